import { execFile, spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import packageJson from '../../../package.json' with { type: 'json' };
import {
  changelogSection,
  publishedAs,
  releasedChangelog,
  versionsIn,
  withVersion,
} from '../../../scripts/release-versions.ts';
import { repositoryFile } from './compose-file.ts';
import { BUILD_TIMEOUT_MS, GO, goProgram } from './go-programs.ts';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const WORKFLOWS = globSync('.github/workflows/*.yml', { cwd: ROOT });

type Job = { permissions?: Record<string, string>; 'timeout-minutes'?: number; needs?: string | string[] };
type Workflow = { permissions: Record<string, string>; jobs: Record<string, Job> };

describe('versions', () => {
  test('everything that carries one has that of package.json', () => {
    const found = versionsIn(repositoryFile);
    expect(new Set(found.map(({ path }) => path)).size).toBe(19);
    expect(new Set(found.map(({ version }) => version))).toEqual(new Set([packageJson.version]));
  });

  test('heliograph --version says it', async () => {
    const { stdout } = await run(process.execPath, ['src/main.ts', '--version'], { cwd: ROOT });
    expect(stdout.trim()).toBe(packageJson.version);
    // The process loads the whole program, which takes its time on a busy machine.
  });

  test('a release changes all of them, and nothing else', () => {
    const files = new Map(versionsIn(repositoryFile).map(({ path }) => [path, repositoryFile(path)]));
    for (const [path, text] of files) {
      const changed = withVersion(path, text, '7.8.9-rc.1');
      const lines = (of: string) => of.split('\n');
      const before = lines(text);
      const different = lines(changed).filter((line, at) => line !== before[at]);
      for (const line of different) expect(line, path).toContain('7.8.9-rc.1');
      expect(different.length, path).toBeLessThanOrEqual(3);
      files.set(path, changed);
    }
    const versions = versionsIn((path) => files.get(path) ?? '').map(({ version }) => version);
    expect(new Set(versions)).toEqual(new Set(['7.8.9-rc.1']));
  });

  test('what was unreleased becomes the notes of the version', () => {
    const before =
      '# Changelog\n\n## [Unreleased]\n\n* A new thing.\n\n## [0.1.0] - 2026-01-02\n\n* First.\n';
    const after = releasedChangelog(before, '0.2.0', '2026-03-04');
    expect(after).toContain('## [Unreleased]\n\n## [0.2.0] - 2026-03-04\n\n* A new thing.\n');
    expect(changelogSection(after, '0.2.0')).toBe('* A new thing.');
    expect(changelogSection(after, '0.1.0')).toBe('* First.');
    expect(changelogSection(after, 'Unreleased')).toBe('');
    expect(() => releasedChangelog(after, '0.3.0', '2026-03-05')).toThrow(/nothing unreleased/);
  });

  test('CHANGELOG.md says what the version of package.json brings, and what stands behind it', () => {
    const changelog = repositoryFile('CHANGELOG.md');
    expect(changelogSection(changelog, packageJson.version)).not.toBe('');
    const released = [...changelog.matchAll(/^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d$/gm)];
    expect(released.map(([, version]) => version)[0]).toBe(packageJson.version);
  });

  test.each([
    ['0.2.0', ['0.1.0'], ['0.2.0', '0.2', 'stable', 'latest'], 'latest'],
    ['1.4.2', ['1.4.1', '0.9.0'], ['1.4.2', '1.4', '1', 'stable', 'latest'], 'latest'],
    ['1.4.2', ['1.4.2', '1.5.0-rc.1'], ['1.4.2', '1.4', '1', 'stable', 'latest'], 'latest'],
    ['1.4.10', ['1.4.9', '1.10.0'], ['1.4.10', '1.4'], 'release-1.4'],
    ['1.4.2', ['1.4.10', '2.0.0'], ['1.4.2'], 'release-1.4'],
    ['1.5.0', ['1.4.2', '2.0.0'], ['1.5.0', '1.5', '1'], 'release-1.5'],
    ['2.0.0-rc.1', ['1.4.2'], ['2.0.0-rc.1', 'next'], 'next'],
  ])('%s beside %j has the tags %j and the channel %s', (version, known, imageTags, channel) => {
    expect(publishedAs(version, known)).toEqual({ imageTags, channel });
  });

  test('the workflow gets them by lines', () => {
    const { stdout } = spawnSync(process.execPath, ['scripts/release.ts', '--published', '1.4.10'], {
      cwd: ROOT,
      input: '1.4.9\n1.10.0\n',
      encoding: 'utf8',
    });
    expect(stdout).toBe('channel=release-1.4\nimage-tags=1.4.10 1.4\n');
  });
});

describe('workflows', () => {
  test('of checks, of the documentation, of releases and of scans are there', () => {
    const names = ['ci', 'docs', 'release', 'security'];
    expect(WORKFLOWS.toSorted()).toEqual(names.map((name) => `.github/workflows/${name}.yml`));
  });

  describe.skipIf(GO === undefined)('as actionlint reads them', () => {
    beforeAll(async () => void (await goProgram('actionlint')), BUILD_TIMEOUT_MS);
    test.each(WORKFLOWS)('%s has no mistake', async (path) => {
      // What is looked for is the same everywhere, whether shellcheck is installed or not.
      await run(await goProgram('actionlint'), ['-shellcheck=', '-pyflakes=', path], { cwd: ROOT });
    });
  });

  test.each(WORKFLOWS)('%s runs no action that can change under its name', (path) => {
    const used = [...repositoryFile(path).matchAll(/uses: (.+)$/gm)].map(([, action]) => action);
    expect(used.length).toBeGreaterThan(2);
    for (const action of used) expect(action).toMatch(/^[\w-]+(?:\/[\w-]+)+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  });

  test.each(WORKFLOWS)('%s may write where it must, and each job ends', (path) => {
    const { permissions, jobs } = parse(repositoryFile(path)) as Workflow;
    expect(permissions).toEqual({ contents: 'read' });
    for (const [name, job] of Object.entries(jobs)) {
      expect(job['timeout-minutes'], name).toBeGreaterThan(0);
      const written = Object.entries(job.permissions ?? {}).filter(([, access]) => access === 'write');
      if (path.endsWith('ci.yml')) expect(written).toEqual([]);
      if (path.endsWith('security.yml') && name !== 'codeql') expect(written).toEqual([]);
      if (name === 'codeql') expect(written).toEqual([['security-events', 'write']]);
      if (/client$/.test(name)) expect(written).toEqual([['id-token', 'write']]);
    }
    expect(repositoryFile(path)).not.toContain('pull_request_target');
  });

  test('each package for npm is published with the version of the rest, and the command line as a file too', () => {
    const text = repositoryFile('.github/workflows/release.yml');
    const { jobs } = parse(text) as { jobs: { client: { strategy: { matrix: { package: string[] } } } } };
    const packages = globSync('clients/*/package.json', { cwd: ROOT }).map(dirname).toSorted();
    expect(jobs.client.strategy.matrix.package.toSorted()).toEqual(packages);
    const versions = versionsIn(repositoryFile).map(({ path }) => path);
    for (const name of packages) expect(versions).toContain(`${name}/package.json`);
    expect(text).toContain('clients/cli/dist/heliograph.js#');
  });

  test('image and packages go under the tags and the channel that the version has', () => {
    const text = repositoryFile('.github/workflows/release.yml');
    expect(text).toContain('npm run --silent release -- --published "$version" < known');
    expect(text).toContain('for tag in $TAGS; do echo "$IMAGE:$tag"; done');
    expect(text).toMatch(/tags: \$\{\{ steps\.tags\.outputs\.names \}\}/);
    expect(text).toContain('npm publish --provenance --access public --tag "$CHANNEL"');
  });

  test('every file of a release is in SHA256SUMS, which is signed, and the notes have the digests of image and chart', () => {
    const text = repositoryFile('.github/workflows/release.yml');
    const files = /gh release create [\s\S]+$/.exec(text)?.[0].match(/\*\.[\w.]+/g) ?? [];
    expect(files).toEqual(['*.spdx.json', '*.tgz', '*.whl', '*.tar.gz']);
    expect(text).toContain(`sha256sum -- ${files.join(' ')} > SHA256SUMS\n`);
    expect(text).toContain('sha256sum heliograph.js) >> SHA256SUMS\n');
    expect(text).toContain('cosign sign-blob --yes --bundle SHA256SUMS.sigstore.json SHA256SUMS\n');
    for (const name of ['SHA256SUMS', 'SHA256SUMS.sigstore.json', '$IMAGE_DIGEST', '$CHART_DIGEST'])
      expect(text).toContain(name);
  });

  test('an image of more than 150 MB fails', () => {
    expect(repositoryFile('.github/workflows/ci.yml')).toMatch(/gzip \| wc -c[\s\S]+-le 150000000$/m);
  });

  test('nothing is published before the tests have passed', () => {
    const { jobs } = parse(repositoryFile('.github/workflows/release.yml')) as Workflow;
    expect(repositoryFile('.github/workflows/release.yml')).toMatch(
      / {2}verify:[\s\S]+?run: \.ci\/run\n {2}image:/,
    );
    for (const [name, { needs = [] }] of Object.entries(jobs))
      if (name !== 'verify') expect([needs].flat()).toContain('verify');
  });
});

test('Renovate finds the programs and schemas that tests and images get by Go', () => {
  const { customManagers } = JSON.parse(repositoryFile('.github/renovate.json'));
  const [{ matchStrings, managerFilePatterns }] = customManagers;
  const files = globSync(['test/unit/deployment/*.ts', 'deploy/*/Dockerfile'], { cwd: ROOT }).filter((path) =>
    managerFilePatterns.some((pattern: string) => new RegExp(pattern.slice(1, -1)).test(path)),
  );
  const found = files.flatMap((path) =>
    [...repositoryFile(path).matchAll(new RegExp(matchStrings[0], 'g'))].map(({ groups }) => groups?.depName),
  );
  expect([...new Set(found)].toSorted()).toEqual([
    'github.com/caddyserver/caddy/v2',
    'github.com/kedacore/keda/v2',
    'github.com/minio/mc',
    'github.com/minio/minio',
    'github.com/prometheus-operator/prometheus-operator',
    'github.com/rhysd/actionlint',
    'github.com/versity/versitygw',
    'helm.sh/helm/v3',
    'sigs.k8s.io/gateway-api',
  ]);
});
