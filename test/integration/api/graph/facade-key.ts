import {
  type ApiKeyScope,
  apiKeyHints,
  hashApiKey,
  newApiKey,
} from '../../../../src/features/keys/api-key.ts';
import { insertApiKey } from '../../../../src/features/keys/api-key-store.ts';
import type { Database } from '../../../../src/platform/postgres/database.ts';

/** Adds a key that may call the facade only, with every call unless scopes are named. */
export async function addFacadeKey(
  database: Database,
  wabaId: string,
  scopes: readonly ApiKeyScope[] = ['graph', 'graph_manage'],
): Promise<string> {
  const key = newApiKey();
  const { prefix, last4 } = apiKeyHints(key);
  const fields = { name: 'chat', keyHash: hashApiKey(key), prefix, lastFour: last4, expiresAt: null };
  await insertApiKey(database, wabaId, { ...fields, scopes });
  return key;
}
