import type { Logger } from '../../platform/logger.ts';
import type { ObjectStore } from '../../platform/object-store/object-store.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { inBatches } from '../../platform/postgres/partitions.ts';
import { forgetOldIdempotencyKeys } from './send/idempotency-keys.ts';
import { removeSpentUploads } from './send/media-uploads.ts';
import { forgetSpentPacing } from './send/send-pacing.ts';

type Removal = (ending: AbortSignal) => Promise<void>;

/** Removes the remains of sends whose time is over, by step of housekeeping. */
export function sendRemovals(tools: {
  database: Database;
  objectStore: Pick<ObjectStore, 'remove'>;
  logger: Logger;
}): Readonly<Record<string, Removal>> {
  const { database } = tools;
  return {
    'idempotency keys': (ending) => inBatches((limit) => forgetOldIdempotencyKeys(database, limit), ending),
    'send pacing': (ending) => inBatches((limit) => forgetSpentPacing(database, limit), ending),
    'uploaded files': async (ending) => {
      const failures = await removeSpentUploads({ ...tools, ending });
      if (failures > 0) throw new Error(`the object store did not remove ${failures} files`);
    },
  };
}
