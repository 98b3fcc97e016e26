import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const LOOK_AGAIN_MS = 200;

function isRunning(pid: number): boolean {
  try {
    return pid > 0 && process.kill(pid, 0);
  } catch {
    return false;
  }
}

function readPid(file: string): number {
  try {
    return Number(readFileSync(file, 'utf8'));
  } catch {
    return 0;
  }
}

/** Whether a process builds the site of this folder now. */
export function isBuilding(site: string): boolean {
  return isRunning(readPid(join(site, 'build.pid')));
}

function take(file: string): boolean {
  try {
    writeFileSync(file, String(process.pid), { flag: 'wx' });
    return true;
  } catch {
    return false;
  }
}

/**
 * Waits until no other process builds the site of this folder: two would take each other's pages away, as `npm test` beside
 * the build of `npm start` would. This process is the builder until it ends.
 */
export async function becomeBuilder(site: string): Promise<void> {
  const file = join(site, 'build.pid');
  while (!take(file)) {
    if (isBuilding(site)) await sleep(LOOK_AGAIN_MS);
    else rmSync(file, { force: true });
  }
  process.once('exit', () => rmSync(file, { force: true }));
}
