import { describe, expect, test } from 'vitest';
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

describe('what is published and scanned', () => {
  const [ci, release, security] = ['ci', 'release', 'security'].map((name) =>
    repositoryFile(`.github/workflows/${name}.yml`),
  );

  test('every language of the repository is analysed, each commit is searched for secrets, the image for vulnerabilities', () => {
    expect(security).toContain('language: [javascript-typescript, python, go, actions]');
    expect(security).toContain('cron:');
    expect(security).toMatch(
      /fetch-depth: 0[\s\S]+gitleaks\/v8@v[\d.]+ git --config \.github\/gitleaks\.toml/,
    );
    expect(ci).toMatch(/anchore\/scan-action@\S+ # v[\d.]+\n\s+with: \{ image: "heliograph:ci"/);
  });

  test('no long-lived token publishes the Python client, and what packs it has digests', () => {
    expect(release).not.toMatch(/TWINE_PASSWORD|PYTHON_INDEX_TOKEN/);
    expect(release).toMatch(/pypa\/gh-action-pypi-publish@[\s\S]+attestations: true/);
    const installs = release?.match(/pip install.*/g) ?? [];
    expect(installs).toHaveLength(2);
    for (const install of installs) expect(install).toContain('--require-hashes');
    const locked = repositoryFile('clients/python/requirements-packing.txt');
    const packages = locked.split(/^(?=[a-z0-9_.-]+==)/m).slice(1);
    for (const text of packages) expect(text).toMatch(/ --hash=sha256:[0-9a-f]{64}/);
    for (const line of repositoryFile('clients/python/requirements-packing.in').trim().split('\n')) {
      expect(packages.some((text) => text.startsWith(`${line} `))).toBe(true);
    }
  });

  test('both tags of a release must be signed before anything is published', () => {
    const verify = release?.slice(release.indexOf('  verify:'), release.indexOf('\n  image:')) ?? '';
    expect(verify).toContain('"$GITHUB_REF_NAME" "clients/go/$GITHUB_REF_NAME"');
    expect(verify).toMatch(/git cat-file tag .* grep -q .*SIGNATURE/);
    expect(repositoryFile('scripts/release.ts')).toMatch(/git tag --sign clients\/go\/v\S+version/);
  });
});
