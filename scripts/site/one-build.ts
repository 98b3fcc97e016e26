import { join } from 'node:path';
import { acquireLock, LockHeldError, waitForLock } from '../../dev/embedded/exclusive-lock.ts';

const lockOf = (site: string) => join(site, 'build.lock');

/** Whether a process builds the site of this folder now. */
export function isBuilding(site: string): boolean {
  try {
    acquireLock(lockOf(site)).release();
    return false;
  } catch (error) {
    if (error instanceof LockHeldError) return true;
    throw error;
  }
}

/**
 * Waits until no other process builds the site of this folder: two would take each other's pages away, as `npm test` beside
 * the build of `npm start` would. This process is the builder until it ends.
 */
export async function becomeBuilder(site: string): Promise<void> {
  const lock = await waitForLock(lockOf(site));
  process.once('exit', lock.release);
}
