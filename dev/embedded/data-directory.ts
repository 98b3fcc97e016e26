import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
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
  options: { fresh: boolean; log: (line: string) => void },
): Promise<ExclusiveLock> {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  assertOurs(dataDir);
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
