import { expect, test } from 'vitest';
import { refusedLicences } from '../../../scripts/licences.ts';
import { repositoryFile } from './compose-file.ts';

test('every package of the lock file has a licence that is allowed', () => {
  expect(refusedLicences(JSON.parse(repositoryFile('package-lock.json')).packages)).toEqual([]);
});

test.each([
  ['MIT', []],
  ['(MIT OR GPL-3.0-only)', []],
  ['Apache-2.0 AND MIT', []],
  ['MIT AND GPL-3.0-only', ['x: MIT AND GPL-3.0-only']],
  ['AGPL-3.0-only', ['x: AGPL-3.0-only']],
  ['MPL-2.0', ['x: MPL-2.0']],
  ['(MIT AND (GPL-2.0 OR MIT))', ['x: (MIT AND (GPL-2.0 OR MIT))']],
  [undefined, ['x: none']],
])('a shipped package with the licence %s: %j', (license, refused) => {
  const locked = license === undefined ? {} : { license };
  expect(refusedLicences({ '': {}, 'node_modules/a/node_modules/x': locked })).toEqual(refused);
});

test('tools may have licences that what is shipped may not', () => {
  expect(refusedLicences({ 'node_modules/x': { license: 'MPL-2.0', dev: true } })).toEqual([]);
  expect(refusedLicences({ 'node_modules/x': { license: 'GPL-3.0-only', dev: true } })).toHaveLength(1);
});

test('CI checks licences and known vulnerabilities and makes the bill of materials, which a release carries', () => {
  const [ci, release] = ['ci', 'release'].map((name) => repositoryFile(`.github/workflows/${name}.yml`));
  for (const step of ['npm run licences', 'npm audit --omit dev', 'npm run --silent sbom']) {
    expect(ci).toContain(step);
  }
  expect(release).toContain('npm run --silent sbom');
});
