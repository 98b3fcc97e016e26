import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { tracing } from '../../../src/platform/metrics/metrics.ts';

const SRC = new URL('../../../src/', import.meta.url).pathname;

test('what makes and sends traces is loaded only where they are switched on', () => {
  const loading = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) =>
      [...readFileSync(join(SRC, file), 'utf8').matchAll(/^.*tracing\.ts'.*$/gm)].map(
        ([line]) => `${file}: ${line.trim()}`,
      ),
    );
  expect(loading).toEqual(["serve.ts: const { startTracing } = await import('./platform/tracing.ts');"]);
  const source = readFileSync(join(SRC, 'serve.ts'), 'utf8');
  expect(source).toMatch(/if \(config\.traces\.url === ''\) return [^;]+;\s+const \{ startTracing \}/);
  expect(tracing).toEqual({ note: null, inActivity: null });
});
