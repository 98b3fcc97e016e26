import { randomBytes } from 'node:crypto';
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** Replaces a file as a whole (mode 0600): a reader sees the old content or the new, never a part. */
export function writePrivateFile(path: string, content: string): void {
  const temporary = writeTemporary(path, content);
  renameSync(temporary, path);
}

/** Makes a file (mode 0600) with its full content; false when it exists already. */
export function createPrivateFile(path: string, content: string): boolean {
  const temporary = writeTemporary(path, content);
  try {
    linkSync(temporary, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(temporary, { force: true });
  }
}

/** The parsed content of a JSON file; undefined when it is missing or not JSON. */
export function readJsonFile(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return undefined;
  }
}

/** A secret (base64url) that is made at the first call and kept in a file of its own (mode 0600). */
export function keptSecret(path: string, sizeBytes: number): string {
  createPrivateFile(path, randomBytes(sizeBytes).toString('base64url'));
  return readFileSync(path, 'utf8').trim();
}

function writeTemporary(path: string, content: string): string {
  mkdirSync(dirname(path), { recursive: true });
  const temporary = `${path}.${process.pid}.${randomBytes(4).toString('hex')}.tmp`;
  writeFileSync(temporary, content, { mode: 0o600 });
  return temporary;
}
