import type { Logger } from '../../platform/logger.ts';
import { type ObjectStore, ObjectStoreUnavailable } from '../../platform/object-store/object-store.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { forgetMediaUpload, listSpentMediaUploads } from './media-uploads.ts';

const BATCH = 200;

/** After so many the store is taken to be away: asking it for every file would take hours. */
const FAILURES_IN_A_ROW = 5;

/**
 * Removes the bytes of files that nobody can send any more, and then what is known of them. A file whose bytes cannot be
 * removed stays until the next time and holds up no other. Returns how many could not be removed.
 */
export async function removeSpentUploads(tools: {
  database: Database;
  objectStore: Pick<ObjectStore, 'remove'>;
  logger: Logger;
}): Promise<number> {
  const { database, objectStore, logger } = tools;
  let failures = 0;
  let inARow = 0;
  let lastError: ObjectStoreUnavailable | null = null;
  for await (const { uuid, objectKey } of spentUploads(database)) {
    const error = await removeBytes(objectStore, objectKey);
    if (error === null) {
      await forgetMediaUpload(database, uuid);
      inARow = 0;
      continue;
    }
    lastError = error;
    failures += 1;
    inARow += 1;
    if (inARow === FAILURES_IN_A_ROW) break;
  }
  if (lastError !== null) {
    logger.warn({ err: lastError, failures }, 'uploaded files that have expired are removed later');
  }
  return failures;
}

async function* spentUploads(database: Database): AsyncGenerator<{ uuid: string; objectKey: string }> {
  for (let after: string | null = null; ; ) {
    const page = await listSpentMediaUploads(database, after, BATCH);
    yield* page;
    if (page.length < BATCH) return;
    after = page.at(-1)?.uuid ?? null;
  }
}

async function removeBytes(
  objectStore: Pick<ObjectStore, 'remove'>,
  objectKey: string,
): Promise<ObjectStoreUnavailable | null> {
  try {
    await objectStore.remove(objectKey);
    return null;
  } catch (error) {
    if (error instanceof ObjectStoreUnavailable) return error;
    throw error;
  }
}
