import { globSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { repositoryFile } from './compose-file.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const DOCUMENT = repositoryFile('docs/architecture.md');
const SOURCES = globSync('{src,dev}/**/*.{ts,sql}', { cwd: ROOT }).map(repositoryFile);

/** It keeps its own time, without `startLoop`. */
const LOOP_OF_ITS_OWN = 'intake';

function section(heading: string): string {
  return DOCUMENT.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? '';
}

/** The first cells, which are code, and the last cells of the table below a heading. */
function rowsBelow(heading: string): [string, string][] {
  return [...section(heading).matchAll(/^\| `([\w-]+)` \| .* \| (.+) \|$/gm)].map(
    ([, first = '', last = '']) => [first, last],
  );
}

/** What a pattern with one group finds in the sources, each once, sorted. */
function inSources(pattern: RegExp): string[] {
  const found = SOURCES.flatMap((source) => [...source.matchAll(pattern)].map(([, name = '']) => name));
  return [...new Set(found)].toSorted();
}

/** Tables in the order of the file, without partitions, and whether they have partitions. */
function tablesOfSchema(): [string, string][] {
  const statements = repositoryFile('src/platform/postgres/migrations/schema.sql').split(/;\n/);
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

  test('has a line for every loop of the worker', () => {
    const started = inSources(/startLoop\(\{\s*name: '([\w-]+)'/g);
    expect(started.length).toBeGreaterThan(5);
    expect(
      rowsBelow('Loops')
        .map(([name]) => name)
        .toSorted(),
    ).toEqual([...started, LOOP_OF_ITS_OWN].toSorted());
  });

  test('names the notifications that are listened to', () => {
    const handled = inSources(/^\s+(heliograph_\w+): /gm);
    expect(handled.length).toBeGreaterThan(2);
    const documented = [...section('Loops').matchAll(/NOTIFY (heliograph_\w+)/g)].map(
      ([, name = '']) => name,
    );
    expect(documented.toSorted()).toEqual(handled);
  });
});

describe('the glossary', () => {
  const terms = [...section('Glossary').matchAll(/^\| ([^|]+) \| [^|]+ \|$/gm)]
    .map(([, term = '']) => term)
    .slice(1);

  test('has at most 40 terms, sorted', () => {
    expect(terms.length).toBeGreaterThan(20);
    expect(terms.length).toBeLessThanOrEqual(40);
    expect(terms).toEqual(terms.toSorted((a, b) => a.toLowerCase().localeCompare(b.toLowerCase(), 'en')));
  });

  const documents = globSync('docs/**/*.md', { cwd: ROOT }).map(repositoryFile);
  const everywhere = [...documents, ...SOURCES].join('\n').replace(section('Glossary'), '').toLowerCase();

  test.each(terms)('has no term that is used nowhere: %s', (term) => {
    expect(everywhere).toContain(term.toLowerCase());
  });
});
