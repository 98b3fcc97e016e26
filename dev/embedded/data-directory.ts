import { existsSync, mkdirSync, readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { acquireLock, type ExclusiveLock, LockHeldError } from './exclusive-lock.ts';
import { stopRecordedProcesses } from './recorded-processes.ts';

/** The data directory cannot be used, or another run uses it. */
class DataDirectoryError extends Error {
  override readonly name = 'DataDirectoryError';
}

const MARK = 'heliograph-data';
const LOCK = 'lock';
/** What may lie in a directory that is not ours yet. */
const HARMLESS = new Set([LOCK, '.DS_Store', '.gitkeep', '.gitignore']);
const LEFTOVER_GRACE_MS = 15_000;

/**
 * Takes the data directory for this process, ends what a killed run left behind in it, and empties it
 * when `fresh`. Throws DataDirectoryError for a directory with other content, or one in use.
 */
export async function openDataDirectory(
  dataDir: string,
  options: { fresh: boolean; log: (line: string) => void; freeBytes?: number },
): Promise<ExclusiveLock> {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  assertOurs(dataDir);
  // To start empty makes room.
  if (!options.fresh) assertRoom(dataDir, options.freeBytes ?? freeBytesOf(dataDir));
  const lock = lockDirectory(dataDir);
  const stopped = await stopRecordedProcesses(recordFileOf(dataDir), LEFTOVER_GRACE_MS);
  if (stopped.length > 0) options.log(`stopped what an earlier run left: ${stopped.join(', ')}`);
  if (options.fresh) empty(dataDir);
  writeFileSync(join(dataDir, MARK), 'State of `npm start`. `npm start -- --fresh` removes it.\n');
  return lock;
}

/** Where a supervisor writes down its processes. */
export function recordFileOf(dataDir: string): string {
  return join(dataDir, 'pids.json');
}

function assertOurs(dataDir: string): void {
  const foreign = readdirSync(dataDir).some((name) => !HARMLESS.has(name));
  if (foreign && !existsSync(join(dataDir, MARK))) {
    throw new DataDirectoryError(
      `${dataDir} is not a data directory of Heliograph and is not empty; nothing was changed. Choose another.`,
    );
  }
}

/** Less, and PostgreSQL cannot make its files, which it says in words that help nobody. */
const ROOM_BYTES = 500_000_000;

function assertRoom(dataDir: string, freeBytes: number): void {
  if (freeBytes >= ROOM_BYTES) return;
  throw new DataDirectoryError(
    `The disk of ${dataDir} has ${Math.floor(freeBytes / 1_000_000)} MB left, and ${ROOM_BYTES / 1_000_000} MB are needed. ` +
      'Free some, or choose a directory on another disk: npm start -- --data-dir /other/disk/heliograph',
  );
}

function freeBytesOf(dataDir: string): number {
  const { bavail, bsize } = statfsSync(dataDir);
  return bavail * bsize;
}

function lockDirectory(dataDir: string): ExclusiveLock {
  try {
    return acquireLock(join(dataDir, LOCK));
  } catch (error) {
    if (!(error instanceof LockHeldError)) throw error;
    throw new DataDirectoryError(
      `Heliograph runs already in ${dataDir} (process ${error.pid}). ` +
        'Stop it first, or choose another directory with --data-dir.',
    );
  }
}

/** The mark goes last: an interrupted removal can be done again. */
function empty(dataDir: string): void {
  const names = readdirSync(dataDir).filter((name) => name !== LOCK && name !== MARK);
  for (const name of [...names, MARK]) rmSync(join(dataDir, name), { recursive: true, force: true });
}
