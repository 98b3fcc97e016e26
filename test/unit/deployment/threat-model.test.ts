import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { repositoryFile } from './compose-file.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** The rows of the threat model: asset, threat, defence, tests. */
const ROWS = repositoryFile('SECURITY.md')
  .split('\n')
  .filter((line) => line.startsWith('| ') && !line.startsWith('| asset '))
  .map((line) =>
    line
      .split(/(?<!\\)\|/)
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );

test('SECURITY.md has a row for each threat, with its asset, its defence and its tests', () => {
  expect(ROWS.length).toBeGreaterThan(30);
  for (const row of ROWS) {
    expect(row, row.join(' | ')).toHaveLength(4);
    for (const cell of row) expect(cell).not.toBe('');
  }
});

test.each(ROWS.map(([, threat = '', , tests = '']) => [threat, tests]))(
  'the tests of “%s” exist and test something',
  (_, tests) => {
    const files = [...tests.matchAll(/`([^`]+)`/g)].map(([, path = '']) => path);
    expect(files.length).toBeGreaterThan(0);
    for (const file of files) {
      expect(file).toMatch(/\.test\.ts$/);
      expect(existsSync(`${ROOT}test/${file}`), file).toBe(true);
      expect(readFileSync(`${ROOT}test/${file}`, 'utf8')).toMatch(/\b(test|it)(\.each)?\(/);
    }
  },
);
