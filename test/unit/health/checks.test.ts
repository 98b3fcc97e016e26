import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { type Check, doctorChecks, overall, resultOf, runChecks } from '../../../src/ops/health/doctor.ts';
import { fail, ok, warn } from '../../../src/ops/health/findings.ts';

const ALL = doctorChecks({} as never);

test('docs/operators/monitoring.md has a row for each check of heliograph-server doctor, and for nothing else', () => {
  const text = readFileSync(new URL('../../../docs/operators/monitoring.md', import.meta.url), 'utf8');
  const [, table = ''] = text.split('| check | looks at |\n|---|---|\n');
  const rows = [...(table.split('\n\n')[0] ?? '').matchAll(/^\| `([^`]+)` \| .+ \|$/gm)].map(
    ([, name]) => name,
  );
  expect(rows).toEqual(['settings', ...ALL.map(({ name }) => name)]);
});

test.each(ALL.map((check) => [check.name, check] as const))(
  'the check "%s" says what to do when it throws and when nothing answers',
  async (name, { todo }) => {
    const check = (run: Check['run']) => ({ name, todo, run });
    const results = await runChecks(
      [check(() => Promise.reject(new Error('gone'))), check(() => new Promise(() => undefined))],
      (error) => (error as Error).message,
      5,
    );
    expect(results).toEqual([
      { name, status: 'fail', detail: 'gone', todo },
      { name, status: 'fail', detail: 'no answer within 0.005 s', todo },
    ]);
    expect(todo.length).toBeGreaterThan(5);
  },
);

test('one check may find several things; the worst of all is the state of the installation', async () => {
  const found = [ok('a'), warn('b', 'mend b')];
  const check: Check = { name: 'one', todo: 'look', run: async () => found };
  const results = await runChecks([check], String);
  expect(results).toEqual([
    { name: 'one', status: 'ok', detail: 'a' },
    { name: 'one', status: 'warn', detail: 'b', todo: 'mend b' },
  ]);
  expect(overall(results)).toBe('warn');
  expect(overall([...results, resultOf('two', fail('c', 'mend c'))])).toBe('fail');
  expect(overall([])).toBe('ok');
});
