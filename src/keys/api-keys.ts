import { knownWaba } from '../accounts/accounts.ts';
import { type Audited, recordChange } from '../platform/audit/audit.ts';
import type { Database } from '../platform/postgres/database.ts';
import { checkName, checkRowId, invalidValue, RequestError, shown } from '../platform/request-input.ts';
import {
  API_KEY_SCOPES,
  type ApiKeyScope,
  apiKeyHints,
  DEFAULT_SCOPES,
  hashApiKey,
  newApiKey,
} from './api-key.ts';
import {
  type ApiKeyDetails,
  findApiKeyDetails,
  findApiKeyForOperator,
  insertApiKey,
  listApiKeys,
  revokeApiKey,
} from './api-key-store.ts';

type KeyTools = { database: Database };

/** `apiKey` is shown this once: only its hash is stored. */
export type CreatedKey = {
  id: string;
  apiKey: string;
  prefix: string;
  wabaId: string;
  name: string;
  scopes: ApiKeyScope[];
  expiresAt: Date | null;
};

/**
 * Makes an API key for a WABA, with the default scopes unless some are named. An expiry in the past makes a key that is
 * refused as expired, which scripts test with. Throws RequestError: `invalid_value`, `unknown_waba`.
 */
export async function createKey(
  { database, actor }: KeyTools & Audited,
  wabaId: string,
  key: { name: string; expiresAt: Date | null; scopes?: readonly string[] },
): Promise<CreatedKey> {
  const name = checkName('The name of the key', key.name);
  const scopes = checkScopes(key.scopes);
  await knownWaba(database, wabaId);
  const apiKey = newApiKey();
  const { prefix, last4 } = apiKeyHints(apiKey);
  const { expiresAt } = key;
  const row = { name, keyHash: hashApiKey(apiKey), prefix, lastFour: last4, expiresAt, scopes };
  const id = await database.transaction(async (trx) => {
    const keyId = await insertApiKey(trx, wabaId, row);
    const detail = { name, prefix, scopes: scopes.join(', '), expiresAt: expiresAt?.toISOString() ?? null };
    await recordChange(trx, actor, { wabaId, action: 'key.created', target: nameOf(keyId), detail });
    return keyId;
  });
  return { id, apiKey, prefix, wabaId, name, scopes, expiresAt };
}

/** The scopes with these names, the default ones unless some are named. Throws RequestError `invalid_value`. */
export function checkScopes(names: readonly string[] = DEFAULT_SCOPES): ApiKeyScope[] {
  const known = API_KEY_SCOPES.join(', ');
  const unknown = names.find((name) => !API_KEY_SCOPES.some((scope) => scope === name));
  if (unknown !== undefined) throw invalidValue(`A scope must be one of ${known}, not ${shown(unknown)}.`);
  const scopes = API_KEY_SCOPES.filter((scope) => names.includes(scope));
  if (scopes.length === 0) throw invalidValue(`Name at least one scope of ${known}.`);
  return scopes;
}

/** The keys of a WABA. Throws RequestError: `invalid_value`, `unknown_waba`. */
export async function listKeys({ database }: KeyTools, wabaId: string): Promise<ApiKeyDetails[]> {
  await knownWaba(database, wabaId);
  return await listApiKeys(database, wabaId);
}

/**
 * Revokes a key for good, from the next request on; a second time changes nothing and tells when it was.
 * Throws RequestError `unknown_key`, also for a key of another WABA.
 */
export async function revokeKey(
  { database, actor }: KeyTools & Audited,
  wabaId: string,
  keyId: string,
): Promise<{ id: string; revokedAt: Date }> {
  checkRowId('The id of the key', keyId);
  return await database.transaction(async (trx) => {
    const before = await findApiKeyDetails(trx, wabaId, keyId);
    await revokeApiKey(trx, wabaId, keyId);
    const revokedAt = (await findApiKeyDetails(trx, wabaId, keyId))?.revokedAt;
    if (!before || !revokedAt) throw unknownKey(keyId);
    if (before.revokedAt === null) {
      const detail = { name: before.name, prefix: before.prefix };
      await recordChange(trx, actor, { wabaId, action: 'key.revoked', target: nameOf(keyId), detail });
    }
    return { id: keyId, revokedAt };
  });
}

/** As `revokeKey`, for operators, who address keys of every WABA. */
export async function revokeKeyAsOperator(
  tools: KeyTools & Audited,
  keyId: string,
): Promise<{ id: string; revokedAt: Date }> {
  const key = await findApiKeyForOperator(tools.database, checkRowId('The id of the key', keyId));
  if (key === null) throw unknownKey(keyId);
  return await revokeKey(tools, key.wabaId, keyId);
}

function nameOf(keyId: string): string {
  return `API key ${keyId}`;
}

function unknownKey(keyId: string): RequestError {
  return new RequestError('unknown_key', `There is no API key ${keyId}.`);
}
