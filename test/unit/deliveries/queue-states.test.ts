import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { TRANSITIONS, type Transition } from '../../../src/queue/states.ts';

const root = new URL('../../../', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, root), 'utf8');

const states = (names: readonly string[]) => names.map((name) => `\`${name}\``).join(', ');
const line = ({ from, to, by, when }: Transition) => `| ${states(from)} | ${states(to)} | ${by} | ${when} |`;

/** The rows of the Markdown table whose header begins like this. */
function tableOf(text: string, header: string): string[] {
  const lines = text.split('\n');
  const start = lines.indexOf(header) + 2;
  const length = lines.slice(start).findIndex((row) => !row.startsWith('|'));
  return lines.slice(start, start + length);
}

describe('the states of the queue', () => {
  test('change as docs/architecture.md says', () => {
    const documented = tableOf(read('docs/architecture.md'), '| from | to | by | when |');
    expect(documented).toEqual(TRANSITIONS.map(line));
  });

  test('are those that the schema allows and docs/architecture.md explains', () => {
    const known = [...new Set(TRANSITIONS.flatMap(({ from, to }) => [...from, ...to]))];
    const open = known.filter((state) => state !== 'new' && state !== 'gone').sort();
    const [, checked = ''] = /delivery_queue \([^;]*state in \(([^)]*)\)/.exec(
      read('src/platform/postgres/migrations/schema.sql'),
    ) ?? [''];
    expect(checked.replaceAll("'", '').split(', ').sort()).toEqual(open);
    const explained = tableOf(read('docs/architecture.md'), '| state | meaning |')
      .map((row) => /^\| `(\w+)`/.exec(row)?.[1])
      .filter((state) => state !== undefined);
    expect(explained.sort()).toEqual(open);
  });
});

const WRITES =
  /\b(insert\s+into|update|delete\s+from|merge\s+into|truncate(\s+table)?)\s+(only\s+)?delivery_queue\b/i;

test('rows of the queue are written in src/queue and in the functions that it calls, nowhere else', () => {
  const files = readdirSync(new URL('src', root), { recursive: true, encoding: 'utf8' })
    .map((path) => `src/${path}`)
    .filter((path) => /\.(ts|sql)$/.test(path));
  const writers = files.filter((path) => WRITES.test(read(path)));
  const elsewhere = writers.filter((path) => !path.startsWith('src/queue/'));
  expect(elsewhere).toEqual(['src/platform/postgres/migrations/functions.sql']);
  expect(writers.length).toBeGreaterThan(elsewhere.length);
});
