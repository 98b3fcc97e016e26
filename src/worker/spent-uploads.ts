import type { Database } from '../database/database.ts';
import { forgetMediaUpload, listSpentMediaUploads } from '../database/media-uploads.ts';
import type { ObjectStore } from '../storage/object-store.ts';
import { ObjectStoreUnavailable } from '../storage/object-store-error.ts';
import type { Logger } from './logger.ts';

const BATCH = 200;

/**
 * Removes the bytes of files that nobody can send any more, and then what is known of them. Without the object store
 * they stay until the next time.
 */
export async function removeSpentUploads(tools: {
  database: Database;
  objectStore: Pick<ObjectStore, 'remove'>;
  logger: Logger;
}): Promise<void> {
  const { database, objectStore, logger } = tools;
  try {
    for (;;) {
      const spent = await listSpentMediaUploads(database, BATCH);
      for (const { uuid, objectKey } of spent) {
        await objectStore.remove(objectKey);
        await forgetMediaUpload(database, uuid);
      }
      if (spent.length < BATCH) return;
    }
  } catch (error) {
    if (!(error instanceof ObjectStoreUnavailable)) throw error;
    logger.warn({ err: error }, 'uploaded files that have expired are removed later');
  }
}
