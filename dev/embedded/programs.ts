import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, resolve } from 'node:path';

/** The first program of the name on PATH that may be run. */
export function findOnPath(
  name: string,
  env: Readonly<Record<string, string | undefined>>,
): string | undefined {
  return (env.PATH ?? '')
    .split(delimiter)
    .filter((directory) => directory !== '')
    .map((directory) => resolve(directory, executableName(name)))
    .find(isExecutable);
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
