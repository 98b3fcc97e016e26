import { globSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { repositoryFile } from './compose-file.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const FILES = globSync('docs/decisions/*.md', { cwd: ROOT })
  .map((path) => basename(path))
  .toSorted();

/** What may name a decision. */
const DOCUMENTS = [
  '*.md',
  'docs/**/*.md',
  '{src,dev,bench,test,scripts,deploy,clients}/**/*.{md,ts,sql,sh,yaml}',
]
  .flatMap((pattern) => globSync(pattern, { cwd: ROOT, exclude: ['**/node_modules/**'] }))
  .filter((path) => path !== 'CHANGELOG.md' && !path.endsWith('decisions.test.ts'));

/** "decisions/0046…", "decision 46", and in the decisions "[46](0046-…". */
const NAMED = /(?:\bdecisions?[ /\n]|\]\()(\d{1,4})\b(?!\.\d)/gi;

/** How a status names another decision, and how the status of that decision names this one; null: it need not. */
const COUNTERPARTS: Readonly<Record<string, string | null>> = {
  'Superseded by': 'Supersedes',
  'Changed by': 'Changes',
  Supersedes: 'Superseded by',
  Changes: 'Changed by',
  'Adds to': null,
  Confirms: null,
};

type StatusLink = { verb: string | null; target: string };

function textOf(file: string): string {
  return repositoryFile(`docs/decisions/${file}`);
}

/** The paragraph that begins with "Status:", below the title. */
function statusOf(text: string): string {
  return /^# .+\n\n(Status: [\s\S]+?)\n\n/.exec(text)?.[1] ?? '';
}

/** The decisions that a status links to, each with the verb before it. */
function linksOf(status: string): StatusLink[] {
  const pattern = new RegExp(`(${Object.keys(COUNTERPARTS).join('|')})|\\]\\((\\d{4}-[^)]+\\.md)\\)`, 'g');
  const links: StatusLink[] = [];
  let verb: string | null = null;
  for (const [, foundVerb, target] of status.matchAll(pattern)) {
    if (foundVerb !== undefined) verb = foundVerb;
    if (target !== undefined) links.push({ verb, target });
  }
  return links;
}

function problemsOf(file: string, read: (file: string) => string): string[] {
  return linksOf(statusOf(read(file))).flatMap(({ verb, target }) => {
    if (verb === null) return [`${file} links to ${target} without a verb`];
    const counterpart = COUNTERPARTS[verb] ?? null;
    const isLater = verb.endsWith(' by');
    if (isLater !== target > file) return [`${file}: ${verb} ${target} has the wrong direction`];
    const back = linksOf(statusOf(read(target)));
    const hasBack = back.some((link) => link.verb === counterpart && link.target === file);
    return counterpart === null || hasBack ? [] : [`${target} does not say: ${counterpart} ${file}`];
  });
}

describe('decisions', () => {
  test('a status that only one end knows is found, and so is a link without a verb', () => {
    const page = (status: string) => `# 1. Title\n\nStatus: accepted, November 2026. ${status}\n\ntext\n`;
    const pages: Record<string, string> = {
      '0001-a.md': page('See [2](0002-b.md).'),
      '0002-b.md': page('Changed by [3](0003-c.md)\n(a part).'),
      '0003-c.md': page('Supersedes [2](0002-b.md). Adds to [1](0001-a.md).'),
    };
    const problems = Object.keys(pages).flatMap((file) => problemsOf(file, (name) => pages[name] ?? ''));
    expect(problems).toEqual([
      '0001-a.md links to 0002-b.md without a verb',
      '0003-c.md does not say: Changes 0002-b.md',
      '0002-b.md does not say: Superseded by 0003-c.md',
    ]);
  });

  test.each(FILES)('%s has its number, a status, and a counterpart for each link of it', (file) => {
    expect(textOf(file)).toMatch(new RegExp(`^# ${Number(file.slice(0, 4))}\\. `));
    expect(statusOf(textOf(file))).toMatch(/^Status: accepted, [A-Z][a-z]+ \d{4}/);
    expect(problemsOf(file, textOf)).toEqual([]);
  });

  test('there are at most 50, each of at most 60 lines', () => {
    expect(FILES.length).toBeLessThanOrEqual(50);
    expect(FILES.filter((file) => textOf(file).trimEnd().split('\n').length > 60)).toEqual([]);
  });

  test('the first page lists all others by their titles', () => {
    const [first = '', ...others] = FILES;
    const listed = [...textOf(first).matchAll(/^\* \[(.+)\]\((.+\.md)\)/gm)];
    const expected = others.map((file) => [/^# (.+)$/m.exec(textOf(file))?.[1], file]);
    expect(listed.map(([, title, file]) => [title, file])).toEqual(expected);
  });

  test('code and documents name decisions that there are', () => {
    const numbers = new Set(FILES.map((file) => Number(file.slice(0, 4))));
    const named = DOCUMENTS.flatMap((path) =>
      [...repositoryFile(path).matchAll(NAMED)].map(([, number]) => ({ path, number: Number(number) })),
    );
    expect(named.length).toBeGreaterThan(50);
    expect(named.filter(({ number }) => !numbers.has(number))).toEqual([]);
  });
});
