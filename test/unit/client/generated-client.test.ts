import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';

const run = promisify(execFile);
const PROJECT = fileURLToPath(new URL('../../../', import.meta.url));
const COMMITTED = join(PROJECT, 'clients', 'typescript', 'src', 'generated');

function filesOf(directory: string): Record<string, string> {
  const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((one) =>
    one.isFile(),
  );
  return Object.fromEntries(
    files.map(({ parentPath, name }) => {
      const path = join(parentPath, name);
      return [path.slice(directory.length), readFileSync(path, 'utf8')];
    }),
  );
}

test('the generated part of the client is what the API of today gives; otherwise run npm run client', async () => {
  const fresh = mkdtempSync(join(tmpdir(), 'heliograph-client-'));
  onTestFinished(() => rmSync(fresh, { recursive: true, force: true }));
  await run(process.execPath, ['scripts/generate-client.ts', fresh], { cwd: PROJECT });
  const [committed, generated] = [filesOf(COMMITTED), filesOf(fresh)];
  expect(Object.keys(generated).sort()).toEqual(Object.keys(committed).sort());
  for (const [name, text] of Object.entries(generated)) expect(committed[name], name).toBe(text);
}, 120_000);
