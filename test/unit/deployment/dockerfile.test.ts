import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import packageJson from '../../../package.json' with { type: 'json' };
import { PROCESS_ENVIRONMENT, V8_FLAGS } from '../../../src/platform/config/process-options.ts';
import { importsOf } from '../architecture/import-policy.ts';
import { repositoryFile } from './compose-file.ts';

const DOCKERFILE = repositoryFile('Dockerfile');

/** What COPY instructions take from the repository, not from another stage. */
function copiedPaths(dockerfile: string): string[] {
  return [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, sources = '']) =>
    sources.split(' '),
  );
}

/** The files that a program loads, itself included; what is only a type is not loaded. */
function loadedBy(program: string): Set<string> {
  const loaded = new Set([program]);
  for (const path of loaded) {
    const text = readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');
    for (const { to, isType } of importsOf(path, text)) if (!isType && existsSync(to)) loaded.add(to);
  }
  return loaded;
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

  test('has all that the build of the documentation loads', () => {
    const [stage = ''] = DOCKERFILE.split(/^FROM /m).filter((text) => text.includes('scripts/docs-site.ts'));
    const copied = copiedPaths(stage);
    const loaded = [...loadedBy('scripts/docs-site.ts')];
    expect(loaded.length).toBeGreaterThan(100);
    expect(
      loaded.filter((path) => !copied.some((one) => path === one || path.startsWith(`${one}/`))),
    ).toEqual([]);
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

  test.each([
    ['the platform', (port: string) => ({ PORT: port })],
    ['a setting, above the platform', (port: string) => ({ HELIOGRAPH_API_PORT: port, PORT: '1' })],
    [
      'the platform, where Kubernetes sets a variable of a service',
      (port: string) => ({ HELIOGRAPH_API_PORT: 'tcp://10.0.0.1:8080', PORT: port }),
    ],
  ])('asks for readiness at the port of %s', async (_name, env) => {
    const [, command = '[]'] = /^HEALTHCHECK .*\n {2}CMD (.+)$/m.exec(DOCKERFILE) ?? [];
    const [, ...args] = JSON.parse(command) as string[];
    const asked: string[] = [];
    const server = createServer((request, response) => {
      asked.push(request.url ?? '');
      response.end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    await promisify(execFile)(process.execPath, args, { env: env(String(port)) });
    server.close();
    expect(asked).toEqual(['/readyz']);
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
