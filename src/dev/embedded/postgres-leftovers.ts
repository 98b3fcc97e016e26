import { readdirSync, readFileSync, readlinkSync, realpathSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { commandLineOf, identifyProcess } from './process-identity.ts';

const ORPHAN_GRACE_MS = 3_000;
const SHUTDOWN_GRACE_MS = 10_000;

/**
 * Makes a data directory free for a new postmaster: what a killed one left running is ended and waited for,
 * since two servers on the same files would destroy them.
 */
export async function removePostgresLeftovers(dataDirectory: string): Promise<void> {
  const main = recordedPostmaster(dataDirectory);
  if (main !== undefined && isServerOf(main, dataDirectory)) {
    send(main, 'SIGINT');
    await until(() => !isServerOf(main, dataDirectory), SHUTDOWN_GRACE_MS);
  }
  // Backends notice the end of their postmaster by themselves, unless they are busy.
  await until(() => serversOf(dataDirectory).length === 0, ORPHAN_GRACE_MS);
  for (const pid of serversOf(dataDirectory)) send(pid, 'SIGKILL');
  await until(() => serversOf(dataDirectory).length === 0, ORPHAN_GRACE_MS);
  removeMisleadingPidFile(dataDirectory);
}

/**
 * PostgreSQL clears the file of a dead postmaster itself, and looks at the shared memory named in it.
 * Only when the number has gone to some other program, which PostgreSQL would take for a server, is it removed.
 */
function removeMisleadingPidFile(dataDirectory: string): void {
  const pid = recordedPostmaster(dataDirectory);
  if (pid === undefined || identifyProcess(pid) === undefined || isServerOf(pid, dataDirectory)) return;
  rmSync(join(dataDirectory, 'postmaster.pid'), { force: true });
}

function recordedPostmaster(dataDirectory: string): number | undefined {
  try {
    const [first = ''] = readFileSync(join(dataDirectory, 'postmaster.pid'), 'utf8').split('\n');
    const pid = Number(first);
    return Number.isInteger(pid) && pid > 1 ? pid : undefined;
  } catch {
    return undefined;
  }
}

/** Every PostgreSQL process works in its data directory; without /proc only the recorded one is known. */
function serversOf(dataDirectory: string): number[] {
  if (process.platform === 'linux') {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
      .filter((pid) => isServerOf(pid, dataDirectory));
  }
  const pid = recordedPostmaster(dataDirectory);
  return pid !== undefined && isServerOf(pid, dataDirectory) ? [pid] : [];
}

function isServerOf(pid: number, dataDirectory: string): boolean {
  if (identifyProcess(pid) === undefined) return false;
  if (process.platform !== 'linux') return commandLineOf(pid).includes(dataDirectory);
  try {
    if (readlinkSync(`/proc/${pid}/cwd`) !== realpathSync(dataDirectory)) return false;
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim() === 'postgres';
  } catch {
    return false;
  }
}

async function until(condition: () => boolean, timeoutMs: number): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  while (!condition() && Date.now() < deadline) await delay(20);
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It ended in the meantime.
  }
}
