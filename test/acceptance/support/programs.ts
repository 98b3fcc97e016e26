import { execFile, execFileSync } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { findGo } from '../../../dev/embedded/programs.ts';

const run = promisify(execFile);

/** The file of a program on the PATH; undefined when there is none. */
export function programOnPath(name: string): string | undefined {
  const directories = (process.env.PATH ?? '').split(delimiter).filter((directory) => directory !== '');
  return directories.map((directory) => join(directory, name)).find(isExecutable);
}

/** Users may have it: "engines" of package.json and the README say so. */
const OLDEST_NODE = 20;

/** Where a Node.js of that version lies that npm has installed. */
const OLDEST_NODE_FOLDER = join(
  process.env.XDG_CACHE_HOME || join(homedir(), '.cache'),
  'heliograph',
  `node-${OLDEST_NODE}`,
);

/** Installs the oldest Node.js that users may have, unless the PATH or the cache has it. */
export async function provideOldestNode(): Promise<void> {
  if (findOldestNode() !== undefined) return;
  const package_ = `node-${process.platform}-${process.arch}@${OLDEST_NODE}`;
  const options = ['--no-audit', '--no-fund', '--no-save', '--prefix', OLDEST_NODE_FOLDER];
  await run('npm', ['install', ...options, package_]).catch((error) => {
    const what = `npm cannot install ${package_}: check the network, the proxy and the registry of npm`;
    throw new Error(what, { cause: error });
  });
}

function findOldestNode(): string | undefined {
  const directories = (process.env.PATH ?? '').split(delimiter).filter((directory) => directory !== '');
  const kept = join(OLDEST_NODE_FOLDER, 'node_modules', `node-${process.platform}-${process.arch}`, 'bin');
  return [...directories, kept]
    .map((directory) => join(directory, 'node'))
    .filter(isExecutable)
    .find((node) => execFileSync(node, ['--version'], { encoding: 'utf8' }).startsWith(`v${OLDEST_NODE}.`));
}

/** The oldest Node.js that users may have. Throws when there is none: its tests are never left out. */
export function oldestNode(): string {
  const found = findOldestNode();
  if (found !== undefined) return found;
  throw new Error(
    `These tests need Node.js ${OLDEST_NODE}, the oldest that users may have: node scripts/provide-test-programs.ts gets it.`,
  );
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** A machine that has just started often installs updates by itself, and holds the lock for minutes. */
const WAIT_FOR_LOCK = ['-o', 'DPkg::Lock::Timeout=600'];

/**
 * Installs Debian packages where that is possible: as root, with apt-get. Says so, and never fails: the tests that
 * need a program which is still missing then are skipped.
 */
export async function installPackages(packages: readonly string[]): Promise<void> {
  const isPossible = process.getuid?.() === 0 && existsSync('/etc/debian_version');
  if (!isPossible || programOnPath('apt-get') === undefined) return;
  process.stdout.write(`Installing ${packages.join(', ')} for the tests of the quick-starts (apt-get).\n`);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  try {
    await run('apt-get', ['update'], { env });
    await run('apt-get', ['install', '-y', '--no-install-recommends', ...WAIT_FOR_LOCK, ...packages], {
      env,
    });
  } catch (error) {
    process.stdout.write(`apt-get failed: ${String(error).slice(0, 500)}\n`);
  }
}

/** Makes sure that programs are there; returns those that are still missing, and says so. */
export async function missingPrograms(packageOf: Readonly<Record<string, string>>): Promise<string[]> {
  const missing = () => Object.keys(packageOf).filter((name) => programOnPath(name) === undefined);
  const before = missing();
  if (before.length === 0) return [];
  await installPackages(before.map((name) => packageOf[name] ?? name));
  const after = missing();
  if (after.length > 0) process.stdout.write(`NOT TESTED for want of ${after.join(', ')}; install it.\n`);
  return after;
}

/** Makes sure that there is a Go that builds our programs, first on PATH; false: there is none, which is said. */
export async function provideGo(): Promise<boolean> {
  if (findGo(process.env) === undefined) await installPackages(['golang-go']);
  const go = findGo(process.env);
  if (go === undefined) process.stdout.write('NOT TESTED for want of Go 1.21 or newer; install it.\n');
  else process.env.PATH = [dirname(go), process.env.PATH].join(delimiter);
  return go !== undefined;
}
