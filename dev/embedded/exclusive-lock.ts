import { readFileSync, renameSync, rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { readJsonFile } from '../../src/platform/local-stack/embedded-description.ts';
import { createPrivateFile } from './kept-files.ts';
import { identifyProcess, isProcessIdentity, isSameProcessAlive } from './process-identity.ts';

/** Another process that still runs holds the lock. */
export class LockHeldError extends Error {
  readonly pid: number;
  constructor(path: string, pid: number) {
    super(`${path} is held by process ${pid}`);
    this.name = 'LockHeldError';
    this.pid = pid;
  }
}

export interface ExclusiveLock {
  release(): void;
}

/**
 * Takes a lock file for this process. A lock whose process has ended, however it ended, is taken over.
 * Throws LockHeldError when a running process has it.
 */
export function acquireLock(path: string): ExclusiveLock {
  const own = JSON.stringify(identifyProcess(process.pid));
  for (let attempt = 0; attempt < 5; attempt++) {
    if (createPrivateFile(path, own) && holds(path, own)) return { release: () => release(path, own) };
    const holder = readJsonFile(path);
    if (isProcessIdentity(holder) && isSameProcessAlive(holder)) throw new LockHeldError(path, holder.pid);
    setAside(path);
  }
  throw new LockHeldError(path, 0);
}

const LOOK_AGAIN_MS = 500;

/** Takes a lock file once no other process has it. `onWait` is called at once and every ten seconds while one does. */
export async function waitForLock(path: string, onWait: () => void = () => {}): Promise<ExclusiveLock> {
  for (let attempt = 0; ; attempt++) {
    try {
      return acquireLock(path);
    } catch (error) {
      if (!(error instanceof LockHeldError)) throw error;
      if (attempt % 20 === 0) onWait();
      await sleep(LOOK_AGAIN_MS);
    }
  }
}

/** Renaming, unlike deleting, lets only one of several processes clear a dead lock. */
function setAside(path: string): void {
  const aside = `${path}.${process.pid}.dead`;
  try {
    renameSync(path, aside);
  } catch {
    return;
  }
  rmSync(aside, { force: true });
}

function holds(path: string, own: string): boolean {
  try {
    return readFileSync(path, 'utf8') === own;
  } catch {
    return false;
  }
}

function release(path: string, own: string): void {
  if (holds(path, own)) rmSync(path, { force: true });
}
