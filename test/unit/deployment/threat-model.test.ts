import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { repositoryFile } from './compose-file.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** The rows of the table in which `header` is the first column. */
function rowsBelow(header: string, path: string): string[][] {
  const lines = repositoryFile(path).split('\n');
  const begin = lines.findIndex((line) => line.startsWith(`| ${header} `)) + 2;
  const length = lines.slice(begin).findIndex((line) => !line.startsWith('| '));
  return lines.slice(begin, length < 0 ? undefined : begin + length).map((line) =>
    line
      .split(/(?<!\\)\|/)
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

/** The rows of the threat model: asset, threat, defence, tests. */
const ROWS = rowsBelow('asset', 'SECURITY.md');

/** Guarantee, what it means, tests. */
const GUARANTEES = rowsBelow('guarantee', 'test/README.md');

/** Requirement, what it asks for, state, evidence: one table for each chapter. */
const ASVS = repositoryFile('docs/operators/asvs.md')
  .split('\n')
  .filter((line) => /^\| \d/.test(line))
  .map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );

test('each row of the ASVS has a known state, evidence that exists, and stands once', () => {
  expect(ASVS.length).toBeGreaterThan(100);
  const ids = ASVS.flatMap(([requirement = '']) => requirement.split(', '));
  expect(new Set(ids).size).toBe(ids.length);
  for (const row of ASVS) {
    expect(row, row.join(' | ')).toHaveLength(4);
    const [requirement, , state = '', evidence = ''] = row;
    expect(['yes', 'partly', 'no', 'yours', 'n/a'], requirement).toContain(state);
    if (['yes', 'partly', 'yours'].includes(state)) expect(evidence, requirement).not.toBe('');
    const files = [...evidence.matchAll(/`((?:unit|integration|acceptance)\/[^`]+)`/g)];
    for (const [, file] of files) expect(existsSync(`${ROOT}test/${file}`), file).toBe(true);
  }
});

test('SECURITY.md has a row for each threat, with its asset, its defence and its tests', () => {
  expect(ROWS.length).toBeGreaterThan(30);
  for (const row of ROWS) {
    expect(row, row.join(' | ')).toHaveLength(4);
    for (const cell of row) expect(cell).not.toBe('');
    const files = [...(row[3] ?? '').matchAll(/`([a-z]+\/[^`]+)`/g)];
    expect(files, row.join(' | ')).not.toEqual([]);
    for (const [, file] of files) expect(existsSync(`${ROOT}test/${file}`), file).toBe(true);
  }
});

test('test/README.md has each guarantee of the design: the seventh is two', () => {
  expect(new Set(GUARANTEES.map(([guarantee]) => guarantee)).size).toBe(9);
});

test.each([
  ...ROWS.map(([, threat = '', , tests = '']) => [threat, tests] as const),
  ...GUARANTEES.map(([, meaning = '', tests = '']) => [meaning, tests] as const),
])('the tests of “%s” exist and test something', (_, tests) => {
  const files = [...tests.matchAll(/`([^`]+)`/g)].map(([, path = '']) => path);
  expect(files.length).toBeGreaterThan(0);
  for (const file of files) {
    expect(file).toMatch(/\.test\.ts$/);
    expect(existsSync(`${ROOT}test/${file}`), file).toBe(true);
    expect(readFileSync(`${ROOT}test/${file}`, 'utf8')).toMatch(/\b(test|it)(\.each)?[(<]/);
  }
});
