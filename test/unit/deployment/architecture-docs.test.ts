import { globSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { LOOPS, type LoopName, loopFacts } from '../../../src/platform/loops.ts';
import { schemaText } from '../architecture/schema-text.ts';
import { repositoryFile } from './compose-file.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const DOCUMENT = repositoryFile('docs/architecture.md');
const SOURCES = globSync('{src,dev}/**/*.{ts,sql}', { cwd: ROOT }).map(repositoryFile);

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

/** Tables in the order of the text, without partitions, and whether they have partitions. */
function tablesOf(schema: string): [string, string][] {
  return schema.split(/;\n/).flatMap((statement): [string, string][] => {
    const [, name, isPartition] = /^create (?:unlogged )?table (\w+)( partition of)?/m.exec(statement) ?? [];
    if (name === undefined || isPartition !== undefined) return [];
    return [[name, statement.includes('partition by range') ? 'by day' : '–']];
  });
}

describe('docs/architecture.md', () => {
  test('has a line for every table, in the order of the first schema, and says which are partitioned', () => {
    const first = tablesOf(repositoryFile('src/platform/postgres/migrations/schema.sql'));
    const names = new Set(first.map(([name]) => name));
    const rows = rowsBelow('Tables');
    expect(first.length).toBeGreaterThan(40);
    expect(rows.filter(([name]) => names.has(name))).toEqual(first);
    expect(rows.toSorted()).toEqual(tablesOf(schemaText()).toSorted());
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

  test('has the list of loops: how often each has a turn, where, and whether it needs Temporal', () => {
    const rows = [...section('Loops').matchAll(/^\| `([\w-]+)` \| (.+?) \| (.+?) \| (.+?) \|/gm)];
    const shown = (ms: number) =>
      ms >= 3_600_000 ? `${ms / 3_600_000} h` : ms >= 1_000 ? `${ms / 1_000} s` : `${ms} ms`;
    expect(rows.map((row) => row.slice(1, 5))).toEqual(
      Object.keys(LOOPS).map((name) => {
        const { pollMs, leaderOnly, needsTemporal } = loopFacts(name as LoopName);
        return [name, shown(pollMs), leaderOnly ? 'the leader' : 'each worker', needsTemporal ? 'yes' : 'no'];
      }),
    );
  });

  test('has a line for no loop that nothing starts', () => {
    const started = inSources(/(?:startLoop\(\{\s*|readonly )name(?::| =) '([a-z-]+)'/g);
    expect(started).toEqual(Object.keys(LOOPS).toSorted());
  });

  test('names the notifications that are listened to', () => {
    const handled = inSources(/^\s+(heliograph_\w+): /gm);
    expect(handled.length).toBeGreaterThan(2);
    const documented = [...section('Loops').matchAll(/NOTIFY (heliograph_\w+)/g)].map(
      ([, name = '']) => name,
    );
    expect([...new Set(documented)].toSorted()).toEqual(handled);
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
