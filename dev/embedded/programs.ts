import { execFileSync } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, resolve } from 'node:path';

type Environment = Readonly<Record<string, string | undefined>>;

/** The first program of the name on PATH that may be run. */
export function findOnPath(name: string, env: Environment): string | undefined {
  return allOnPath(name, env)[0];
}

function allOnPath(name: string, env: Environment): string[] {
  return (env.PATH ?? '')
    .split(delimiter)
    .filter((directory) => directory !== '')
    .map((directory) => resolve(directory, executableName(name)))
    .filter(isExecutable);
}

/** From this minor version of Go 1 on, Go gets the version that a module asks for by itself. */
const OLDEST_GO = 21;

/** A Go that builds what we need: Debian 12 has one that is too old. Go's installer does not put it on PATH. */
export function findGo(env: Environment): string | undefined {
  return [...allOnPath('go', env), ...['/usr/local/go/bin/go'].filter(isExecutable)].find(
    (go) => minorVersionOf(go) >= OLDEST_GO,
  );
}

function minorVersionOf(go: string): number {
  try {
    return Number(/go1\.(\d+)/.exec(execFileSync(go, ['version'], { encoding: 'utf8' }))?.[1]);
  } catch {
    return 0;
  }
}

export function executableName(name: string): string {
  return process.platform === 'win32' ? `${name}.exe` : name;
}

export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
