import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { architectureTable, TRANSITIONS } from '../../support/queue-transitions.ts';

const root = new URL('../../../', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, root), 'utf8');

describe('the states of the queue', () => {
  test('change by a table in docs/architecture.md, with which the tests of the queue compare every move', () => {
    expect(TRANSITIONS).toContainEqual({ from: ['due', 'retrying'], to: ['claimed'] });
    for (const { from, to } of TRANSITIONS) expect(Math.min(from.length, to.length)).toBeGreaterThan(0);
  });

  test('are those that the schema allows and docs/architecture.md explains', () => {
    const known = [...new Set(TRANSITIONS.flatMap(({ from, to }) => [...from, ...to]))];
    const open = known.filter((state) => state !== 'new' && state !== 'gone').sort();
    const [, checked = ''] = /delivery_queue \([^;]*state in \(([^)]*)\)/.exec(
      read('src/platform/postgres/migrations/schema.sql'),
    ) ?? [''];
    expect(checked.replaceAll("'", '').split(', ').sort()).toEqual(open);
    const explained = architectureTable('| state | meaning |')
      .map((row) => /^\| `(\w+)`/.exec(row)?.[1])
      .filter((state) => state !== undefined);
    expect(explained.sort()).toEqual(open);
  });
});

const WRITES =
  /\b(insert\s+into|update|delete\s+from|merge\s+into|truncate(\s+table)?)\s+(only\s+)?delivery_queue\b/i;

test('rows of the queue are written in src/engine/queue and in the functions that it calls, nowhere else', () => {
  const files = readdirSync(new URL('src', root), { recursive: true, encoding: 'utf8' })
    .map((path) => `src/${path}`)
    .filter((path) => /\.(ts|sql)$/.test(path));
  const writers = files.filter((path) => WRITES.test(read(path)));
  const elsewhere = writers.filter((path) => !path.startsWith('src/engine/queue/'));
  expect(elsewhere).toEqual(['src/platform/postgres/migrations/functions.sql']);
  expect(writers.length).toBeGreaterThan(elsewhere.length);
});
