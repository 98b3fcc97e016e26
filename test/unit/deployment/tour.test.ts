import { statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { repositoryFile } from './compose-file.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const TOUR = repositoryFile('docs/tour.md');

/** The headings, which are files, with the text below each. */
const STOPS = TOUR.split(/^## /m)
  .slice(1)
  .map((stop) => ({ path: /\]\(\.\.\/(.+?)\)/.exec(stop)?.[1] ?? '', text: stop }));

/** Names in the text that are code: the reader looks for them in the file. */
function namesIn(text: string): string[] {
  return [...text.matchAll(/`([A-Za-z_]\w*)`/g)].map(([, name = '']) => name);
}

test('the tour has ten files', () => {
  expect(STOPS).toHaveLength(10);
  expect(new Set(STOPS.map(({ path }) => path)).size).toBe(10);
});

test.each(STOPS)('$path exists and has the names that the tour shows there', ({ path, text }) => {
  expect(statSync(`${ROOT}${path}`).isFile()).toBe(true);
  const source = repositoryFile(path);
  const names = namesIn(text);
  expect(names.length).toBeGreaterThan(0);
  expect(names.filter((name) => !source.includes(name))).toEqual([]);
});

test.each(['README.md', 'CONTRIBUTING.md', 'docs/README.md'])('%s links to the tour', (document) => {
  expect(repositoryFile(document)).toMatch(/\]\((?:docs\/)?tour\.md\)/);
});
