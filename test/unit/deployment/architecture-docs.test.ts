import { describe, expect, test } from 'vitest';
import { repositoryFile } from './compose-file.ts';

const DOCUMENT = repositoryFile('docs/architecture.md');

/** The first cells, which are code, and the last cells of the table below a heading. */
function rowsBelow(heading: string): [string, string][] {
  const section = DOCUMENT.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? '';
  return [...section.matchAll(/^\| `(\w+)` \| .* \| (.+) \|$/gm)].map(([, first = '', last = '']) => [
    first,
    last,
  ]);
}

/** Tables in the order of the file, without partitions, and whether they have partitions. */
function tablesOfSchema(): [string, string][] {
  const statements = repositoryFile('src/database/migrations/schema.sql').split(/;\n/);
  return statements.flatMap((statement): [string, string][] => {
    const [, name, isPartition] = /^create (?:unlogged )?table (\w+)( partition of)?/m.exec(statement) ?? [];
    if (name === undefined || isPartition !== undefined) return [];
    return [[name, statement.includes('partition by range') ? 'by day' : '–']];
  });
}

describe('docs/architecture.md', () => {
  test('has a line for every table of the schema, in its order, and says which are partitioned', () => {
    const tables = tablesOfSchema();
    expect(tables.length).toBeGreaterThan(40);
    expect(rowsBelow('Tables')).toEqual(tables);
  });

  test('has a line for every workflow', () => {
    const exported = repositoryFile('src/workflows/bundle-entry.ts').matchAll(/export \{ (.+?) \}/g);
    const workflows = [...exported].flatMap(([, names = '']) => names.split(', '));
    expect(workflows.length).toBeGreaterThan(5);
    expect(
      rowsBelow('Workflows')
        .map(([name]) => name)
        .toSorted(),
    ).toEqual(workflows.toSorted());
  });
});
