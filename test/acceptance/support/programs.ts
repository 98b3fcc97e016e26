import { execFile } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** The file of a program on the PATH; undefined when there is none. */
export function programOnPath(name: string): string | undefined {
  const directories = (process.env.PATH ?? '').split(delimiter).filter((directory) => directory !== '');
  return directories.map((directory) => join(directory, name)).find(isExecutable);
}

/** The Node.js of the machine, which may be older than the one that runs the tests; otherwise that one. */
export function olderNode(): string {
  const directories = (process.env.PATH ?? '')
    .split(delimiter)
    .filter((path) => !path.includes('node_modules'));
  return directories.map((path) => join(path, 'node')).find(isExecutable) ?? process.execPath;
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

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
    await run('apt-get', ['install', '-y', '--no-install-recommends', ...packages], { env });
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
