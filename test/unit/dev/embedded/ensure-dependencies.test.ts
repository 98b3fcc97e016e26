import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { runCommand } from '../../../../dev/embedded/run-command.ts';
import packageJson from '../../../../package.json' with { type: 'json' };
import { temporaryDirectory } from './temporary-directory.ts';

const SCRIPT = fileURLToPath(new URL('../../../../scripts/ensure-dependencies.cjs', import.meta.url));
const LOCK = {
  packages: {
    '': { name: 'demo' },
    'node_modules/a': { version: '1.0.0', integrity: 'sha512-a' },
    'node_modules/other-system': { version: '1.0.0', integrity: 'sha512-o', optional: true },
  },
};

/** A project whose npm only notes that it was called, and installs what `installs` says. */
function project(
  installs: unknown = { packages: { 'node_modules/a': LOCK.packages['node_modules/a'] } },
  failure = 'npm error network unreachable',
  ping = 'exit 0',
) {
  const root = temporaryDirectory();
  const programs = join(root, 'programs');
  for (const directory of ['scripts', 'programs', 'node_modules/.bin'])
    mkdirSync(join(root, directory), { recursive: true });
  copyFileSync(SCRIPT, join(root, 'scripts', 'ensure-dependencies.cjs'));
  writeFileSync(join(root, 'package-lock.json'), JSON.stringify(LOCK));
  writeFileSync(join(root, 'installs.json'), JSON.stringify(installs));
  const npm =
    installs === null
      ? `echo "${failure}" >&2; exit 1`
      : 'echo "$@" >> npm-calls; cp installs.json node_modules/.package-lock.json; touch node_modules/.bin/node';
  writeFileSync(join(programs, 'npm'), `#!/bin/sh\nif [ "$1" = ping ]; then ${ping}; fi\n${npm}\n`);
  chmodSync(join(programs, 'npm'), 0o755);
  const env = { PATH: `${programs}:/usr/bin:/bin`, HELIOGRAPH_CHROMIUM: '/bin/true' };
  return {
    root,
    env,
    ensure: (...args: string[]) =>
      runCommand([process.execPath, join(root, 'scripts', 'ensure-dependencies.cjs'), ...args], { env }),
    calls: () =>
      existsSync(join(root, 'npm-calls'))
        ? readFileSync(join(root, 'npm-calls'), 'utf8').trim().split('\n')
        : [],
  };
}

describe('dependencies before a start', () => {
  test('what is missing is installed once, development dependencies too', async () => {
    const { ensure, calls } = project();
    expect(await ensure()).toMatchObject({ code: 0 });
    expect(calls()).toEqual([expect.stringMatching(/^ci --include=dev /)]);
    expect(await ensure()).toEqual({ code: 0, output: '' });
    expect(calls()).toHaveLength(1);
  });

  test('another version in package-lock.json is installed, with the reason told', async () => {
    const { root, ensure, calls } = project();
    await ensure();
    const changed = {
      packages: { ...LOCK.packages, 'node_modules/a': { version: '1.0.1', integrity: 'sha512-b' } },
    };
    writeFileSync(join(root, 'package-lock.json'), JSON.stringify(changed));
    writeFileSync(join(root, 'installs.json'), JSON.stringify(changed));
    expect((await ensure()).output).toContain('a is not the version in package-lock.json');
    expect(calls()).toHaveLength(2);
    expect((await ensure()).output).toBe('');
  });

  test('a lock file with gaps for other systems is installed as it stands, and not changed', async () => {
    const { root, ensure, calls } = project();
    const a = { ...LOCK.packages['node_modules/a'], optionalDependencies: { 'a-darwin': '1.0.0' } };
    writeFileSync(
      join(root, 'package-lock.json'),
      JSON.stringify({ packages: { '': {}, 'node_modules/a': a } }),
    );
    const filled = { 'node_modules/a': a, 'node_modules/a-darwin': { version: '1.0.0', optional: true } };
    writeFileSync(join(root, 'installs.json'), JSON.stringify({ packages: filled }));
    expect(await ensure()).toMatchObject({ code: 0 });
    expect(calls()).toEqual([expect.stringMatching(/^install --no-save --include=dev /)]);
    expect(await ensure()).toEqual({ code: 0, output: '' });
  });

  test('an installation whose Node.js is missing is done again', async () => {
    const { root, ensure, calls } = project();
    writeFileSync(
      join(root, 'node_modules', '.package-lock.json'),
      readFileSync(join(root, 'installs.json')),
    );
    await ensure();
    expect(calls()).toHaveLength(1);
  });

  test('when npm fails its words and what to check are shown, and the start ends', async () => {
    const { code, output } = await project(null).ensure();
    expect(code).toBe(1);
    expect(output).toContain('npm error network unreachable');
    expect(output).toContain('The npm registry cannot be reached: check the network, the proxy and');
  });

  test.each([
    ['npm error code ENOTFOUND', 'The npm registry cannot be reached: check the network'],
    ['npm error code EAI_AGAIN', 'The npm registry cannot be reached: check the network'],
    ['npm error nospc ENOSPC: no space left on device, write', 'The disk is full: free 3 GB'],
    ['npm error code EACCES', 'A file may not be written'],
    ['npm error code E999', 'See what npm says below'],
  ])('"%s" is one plain sentence with the way out', async (failure, sentence) => {
    const { code, output } = await project(null, failure).ensure();
    expect(code).toBe(1);
    expect(output).toContain(`The dependencies could not be installed. ${sentence}`);
    expect(output).toContain(failure);
  });

  test('a registry that does not answer is told at once, while npm still tries for minutes', async () => {
    const told = 'touch pinged; echo "npm error code ENOTFOUND" >&2; exit 1';
    const waits = '"; until [ -e pinged ]; do sleep 0.1; done; sleep 1; echo "npm gave up';
    const { code, output } = await project(null, waits, told).ensure();
    expect(code).toBe(1);
    expect(output).toMatch(
      /The npm registry cannot be reached: .*npm goes on trying.*\n(?:.*\n)*.*npm gave up/,
    );
  });

  test.each([
    ['answers', 'exit 0'],
    ['has no ping', 'echo "npm error code E404" >&2; exit 1'],
    ['is slow', 'exec sleep 600'],
  ])('nothing is said of a registry that %s', async (_name, ping) => {
    const { code, output } = await project(undefined, '', ping).ensure();
    expect(code).toBe(0);
    expect(output).not.toContain('registry');
  });

  test('an npm that ends well without installing is not believed', async () => {
    const { code, output } = await project({ packages: {} }).ensure();
    expect(code).toBe(1);
    expect(output).toContain('a is not the version in package-lock.json');
  });

  test('a browser that is set but missing is told, without failing', async () => {
    const { env, ensure } = project();
    await ensure();
    expect(await ensure('--browser')).toEqual({ code: 0, output: '' });
    env.HELIOGRAPH_CHROMIUM = '/nonexistent/chromium';
    const { code, output } = await ensure('--browser');
    expect(code).toBe(0);
    expect(output).toContain(
      'HELIOGRAPH_CHROMIUM is set, but /nonexistent/chromium is not an executable file',
    );
  });

  test.each(Object.entries(packageJson.scripts).filter(([, line]) => line.includes('ensure-dependencies')))(
    'npm run %s with an older Node.js and nothing installed runs TypeScript with the installed Node.js',
    async (_name, line) => {
      const { root, env } = project();
      const write = (file: string, text: string) => {
        writeFileSync(join(root, file), `#!/bin/sh\n${text}\n`);
        chmodSync(join(root, file), 0o755);
      };
      write(
        'programs/node',
        `case "$1" in *.ts) echo too old for "$1" >&2; exit 1;; esac; exec ${process.execPath} "$@"`,
      );
      write('new-node', 'echo "$@" >> typescript');
      const npm = readFileSync(join(root, 'programs/npm'), 'utf8');
      write(
        'programs/npm',
        npm.replace('touch node_modules/.bin/node', 'cp new-node node_modules/.bin/node'),
      );
      // As npm runs a script: in one shell, which looks in node_modules/.bin first.
      const PATH = `${root}/node_modules/.bin:${env.PATH}`;
      const { code, output } = await runCommand(['/bin/sh', '-c', line], {
        cwd: root,
        env: { ...env, PATH },
      });
      expect(output).not.toContain('too old');
      expect(code).toBe(0);
      const scripts = line.match(/[\w./-]+\.ts/g) ?? [];
      const ran = existsSync(join(root, 'typescript'))
        ? readFileSync(join(root, 'typescript'), 'utf8').trim().split('\n')
        : [];
      expect(ran).toEqual(scripts);
    },
  );
});
