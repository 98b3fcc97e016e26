import { readFileSync } from 'node:fs';

/** The rows of the table in docs/architecture.md whose header is this line. */
export function architectureTable(header: string): string[] {
  const lines = readFileSync(new URL('../../docs/architecture.md', import.meta.url), 'utf8').split('\n');
  const start = lines.indexOf(header) + 2;
  const length = lines.slice(start).findIndex((row) => !row.startsWith('|'));
  return lines.slice(start, start + length);
}

const namesIn = (cell = '') => [...cell.matchAll(/`(\w+)`/g)].map(([, name = '']) => name);

/** Every way of a delivery from one state of the queue to another; `new` and `gone` are the two ends. */
export const TRANSITIONS = architectureTable('| from | to | by | when |').map((row) => {
  const [, from, to] = row.split('|');
  return { from: namesIn(from), to: namesIn(to) };
});
