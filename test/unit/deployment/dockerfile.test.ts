import { existsSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import packageJson from '../../../package.json' with { type: 'json' };
import { PROCESS_ENVIRONMENT, V8_FLAGS } from '../../../src/platform/config/process-options.ts';
import { repositoryFile } from './compose-file.ts';

const DOCKERFILE = repositoryFile('Dockerfile');

/** What COPY instructions take from the repository, not from another stage. */
function copiedPaths(dockerfile: string): string[] {
  return [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, sources = '']) =>
    sources.split(' '),
  );
}

describe('Dockerfile', () => {
  test('copies paths that exist and that .dockerignore lets through', () => {
    const allowed = repositoryFile('.dockerignore')
      .split('\n')
      .filter((line) => line.startsWith('!'))
      .map((line) => line.slice(1));
    const paths = copiedPaths(DOCKERFILE);
    expect(paths.length).toBeGreaterThan(3);
    for (const path of paths) {
      expect(existsSync(new URL(`../../../${path}`, import.meta.url)), path).toBe(true);
      expect(allowed).toContain(path);
    }
  });

  test('runs the Node.js version that the tests run on, in all stages', () => {
    const bases = [...DOCKERFILE.matchAll(/^FROM (?:--platform=\S+ )?([^\s@]+)/gm)].map(([, image]) => image);
    const image = `node:${packageJson.devDependencies.node}-slim`;
    expect(bases).toEqual([image, image, image]);
  });

  test('has the documentation built where the gateway looks for it', () => {
    expect(DOCKERFILE).toContain('\nRUN node scripts/docs-site.ts\n');
    expect(DOCKERFILE).toContain('\nCOPY --from=site /app/site/dist ./site/dist\n');
  });

  test('does not run as root', () => {
    expect(DOCKERFILE).toMatch(/^USER node$/m);
  });

  test('runs the API unless told otherwise', () => {
    const flags = [...V8_FLAGS, '--import', './bin/stripped-types.js'];
    const command = ['node', ...flags, 'src/main.ts', 'api'].map((part) => `"${part}"`).join(', ');
    expect(DOCKERFILE).toContain(`\nCMD [${command}]\n`);
    const environment = Object.entries(PROCESS_ENVIRONMENT).map(([name, value]) => `${name}=${value}`);
    expect(DOCKERFILE).toContain(`\nENV NODE_ENV=production ${environment.join(' ')}\n`);
  });
});
