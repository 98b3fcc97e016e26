import { apiKeyHints, hashApiKey, newApiKey } from '../../../../src/keys/api-key.ts';
import { insertApiKey } from '../../../../src/keys/api-key-store.ts';
import type { Database } from '../../../../src/platform/postgres/database.ts';

/** Adds a key that may call the facade only. */
export async function addFacadeKey(database: Database, wabaId: string): Promise<string> {
  const key = newApiKey();
  const { prefix, last4 } = apiKeyHints(key);
  const fields = { name: 'chat', keyHash: hashApiKey(key), prefix, lastFour: last4, expiresAt: null };
  await insertApiKey(database, wabaId, { ...fields, scopes: ['graph'] });
  return key;
}
