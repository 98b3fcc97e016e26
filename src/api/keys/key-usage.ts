import type { FastifyBaseLogger } from 'fastify';
import { noteApiKeyUse } from '../../keys/api-key-store.ts';
import type { Database } from '../../platform/postgres/database.ts';

/** Notes the use of API keys beside the requests: no request waits for it, and its failure harms none. */
export function createKeyUsage(database: Database, log: FastifyBaseLogger) {
  const underWay = new Map<string, Promise<void>>();
  return {
    note(wabaId: string, keyId: string): void {
      if (underWay.has(keyId)) return;
      const noted = noteApiKeyUse(database, wabaId, keyId)
        .catch((error: unknown) => log.debug({ err: error }, 'use of an API key was not noted'))
        .finally(() => underWay.delete(keyId));
      underWay.set(keyId, noted);
    },
    /** Resolves when nothing is under way any more. */
    async settled(): Promise<void> {
      await Promise.all(underWay.values());
    },
  };
}
