import { execFileSync, spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { IMAGE_FILES, imagesIn, unpinnedIn, withDigests } from '../../../scripts/image-pins.ts';
import { repositoryFile } from './compose-file.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const DIGEST = `sha256:${'0a'.repeat(32)}`;
const FILES = globSync([...IMAGE_FILES], { cwd: ROOT });

const DOCKERFILE = `FROM node:1-slim AS build
FROM --platform=$BUILDPLATFORM node:1-slim AS site
FROM build AS more
FROM registry.example:5000/alpine:3.23@sha256:${'ff'.repeat(32)}
`;

const COMPOSE = `services:
  api:
    image: \${SERVICE_IMAGE:-heliograph:0.1.0}
  store:
    image: heliograph-minio:1
  postgres:
    image: postgres:18
`;

describe('images of registries', () => {
  test('are found with and without a platform, a registry or a digest; stages and images of ours are none', () => {
    expect(imagesIn(DOCKERFILE)).toEqual([
      ...['node:1-slim', 'node:1-slim'],
      `registry.example:5000/alpine:3.23@sha256:${'ff'.repeat(32)}`,
    ]);
    expect(imagesIn(COMPOSE)).toEqual(['postgres:18']);
    expect(unpinnedIn(DOCKERFILE)).toEqual(['node:1-slim', 'node:1-slim']);
  });

  test('are pinned to the digest that their tag has now, and nothing else changes', async () => {
    const asked: string[] = [];
    const digestOf = async (image: string) => {
      asked.push(image);
      return DIGEST;
    };
    for (const text of [DOCKERFILE, COMPOSE]) {
      const pinned = await withDigests(text, digestOf);
      expect(unpinnedIn(pinned)).toEqual([]);
      expect(pinned.replaceAll(`@${DIGEST}`, '')).toBe(text.replace(/@sha256:(ff)+/, ''));
      expect(await withDigests(pinned, digestOf)).toBe(pinned);
    }
    expect(asked).toContain('registry.example:5000/alpine:3.23');
  });

  test('are not pinned to what is no digest', async () => {
    await expect(withDigests(COMPOSE, async () => 'not found')).rejects.toThrow(/no digest of postgres:18/);
  });

  test('are looked for in every Dockerfile and Compose file', () => {
    const tracked = execFileSync('git', ['ls-files'], { cwd: ROOT, encoding: 'utf8' }).split('\n');
    const naming = tracked.filter(
      (path) =>
        /(^|[/.])Dockerfile$/.test(path) ||
        (/\.ya?ml$/.test(path) && !path.startsWith('charts/') && /^ {4}image: /m.test(repositoryFile(path))),
    );
    expect(FILES.filter((path) => imagesIn(repositoryFile(path)).length > 0).toSorted()).toEqual(
      naming.toSorted(),
    );
  });
});

test('a release is refused while an image is not pinned', () => {
  const unpinned = FILES.filter((path) => unpinnedIn(repositoryFile(path)).length > 0);
  const { status, stderr } = spawnSync(process.execPath, ['scripts/pin-images.ts', '--check'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  expect(status).toBe(unpinned.length === 0 ? 0 : 1);
  for (const path of unpinned) expect(stderr).toContain(`${path} names images without a digest`);
  const release = repositoryFile('.github/workflows/release.yml');
  expect(release.indexOf('npm run --silent pin-images -- --check')).toBeGreaterThan(0);
  expect(release.indexOf('npm run --silent pin-images -- --check')).toBeLessThan(
    release.indexOf('\n  image:'),
  );
});
