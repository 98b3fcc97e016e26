import { type Audited, recordChange } from '../../platform/audit/audit.ts';
import { InvalidCidrError, networkOf } from '../../platform/http/networks.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { checkName, checkRowId, invalidValue, RequestError, shown } from '../../platform/request-input.ts';
import { knownWaba } from '../accounts/accounts.ts';
import { refuseSuspended } from '../accounts/suspension.ts';
import {
  API_KEY_SCOPES,
  type ApiKeyScope,
  apiKeyHints,
  hashApiKey,
  LEAST_SCOPES,
  newApiKey,
} from './api-key.ts';
import {
  type ApiKeyDetails,
  findApiKeyDetails,
  findWabaOfKey,
  insertApiKey,
  listApiKeys,
  revokeApiKey,
  saveAllowedNetworks,
  saveSendLimits,
} from './api-key-store.ts';
import { checkSendLimits, type GivenSendLimits, type SendLimits } from './send-limits.ts';

type KeyTools = { database: Database };

/** `apiKey` is shown this once: only its hash is stored. */
export type CreatedKey = { apiKey: string } & SendLimits &
  Pick<ApiKeyDetails, 'id' | 'prefix' | 'wabaId' | 'name' | 'scopes' | 'allowedNetworks' | 'expiresAt'>;

/**
 * Makes an API key for a WABA, which may only read unless scopes are named. An expiry in the past makes a key that is refused as expired, which scripts test with.
 * Throws RequestError: `invalid_value`, `unknown_waba`, `tenant_suspended`.
 */
export async function createKey(
  { database, actor }: KeyTools & Audited,
  wabaId: string,
  key: GivenSendLimits & {
    name: string;
    expiresAt: Date | null;
    scopes?: readonly string[];
    allowedNetworks?: readonly string[] | null;
    ref?: string;
  },
): Promise<CreatedKey> {
  const name = checkName('The name of the key', key.name);
  const scopes = checkScopes(key.scopes);
  const allowedNetworks = checkNetworks(key.allowedNetworks ?? null);
  const limits = checkSendLimits(key);
  await knownWaba(database, wabaId);
  await refuseSuspended(database, { wabaId });
  const apiKey = newApiKey();
  const { prefix, last4 } = apiKeyHints(apiKey);
  const { expiresAt } = key;
  const row = {
    name,
    keyHash: hashApiKey(apiKey),
    prefix,
    lastFour: last4,
    expiresAt,
    scopes,
    allowedNetworks,
    ref: key.ref ?? null,
    ...limits,
  };
  const id = await database.transaction(async (trx) => {
    const keyId = await insertApiKey(trx, wabaId, row);
    const networks = allowedNetworks?.join(', ') ?? null;
    const detail = {
      name,
      prefix,
      scopes: scopes.join(', '),
      networks,
      ...limits,
      expiresAt: expiresAt?.toISOString() ?? null,
    };
    await recordChange(trx, actor, { wabaId, action: 'key.created', target: nameOf(keyId), detail });
    return keyId;
  });
  return { id, apiKey, prefix, wabaId, name, scopes, allowedNetworks, ...limits, expiresAt };
}

/** The scopes with these names, the least unless some are named. Throws RequestError `invalid_value`. */
export function checkScopes(names: readonly string[] = LEAST_SCOPES): ApiKeyScope[] {
  const known = API_KEY_SCOPES.join(', ');
  const unknown = names.find((name) => !API_KEY_SCOPES.some((scope) => scope === name));
  if (unknown !== undefined) throw invalidValue(`A scope must be one of ${known}, not ${shown(unknown)}.`);
  const scopes = API_KEY_SCOPES.filter((scope) => names.includes(scope));
  if (scopes.length === 0) throw invalidValue(`Name at least one scope of ${known}.`);
  return scopes;
}

const MAX_NETWORKS = 50;

/** Networks as they are stored, single addresses too; none: null, anywhere. Throws RequestError `invalid_value`. */
export function checkNetworks(given: readonly string[] | null): string[] | null {
  const texts = (given ?? []).map((text) => text.trim()).filter((text) => text !== '');
  if (texts.length > MAX_NETWORKS) throw invalidValue(`A key has at most ${MAX_NETWORKS} networks.`);
  try {
    const networks = [...new Set(texts.map(networkOf))];
    return networks.length === 0 ? null : networks;
  } catch (error) {
    if (error instanceof InvalidCidrError) throw invalidValue(error.message);
    throw error;
  }
}

/**
 * Sets the networks from which a key may be used, from the next request on; null or none: anywhere.
 * Throws RequestError: `invalid_value`, `unknown_key`, also for a key of another WABA.
 */
export async function limitKey(
  { database, actor }: KeyTools & Audited,
  wabaId: string,
  keyId: string,
  given: readonly string[] | null,
): Promise<{ id: string; allowedNetworks: string[] | null }> {
  const id = checkRowId('The id of the key', keyId);
  const allowedNetworks = checkNetworks(given);
  await database.transaction(async (trx) => {
    if (!(await saveAllowedNetworks(trx, wabaId, id, allowedNetworks))) throw unknownKey(id);
    const detail = { networks: allowedNetworks?.join(', ') ?? 'anywhere' };
    await recordChange(trx, actor, { wabaId, action: 'key.limited', target: nameOf(id), detail });
  });
  return { id, allowedNetworks };
}

/**
 * Sets what a key may send, from the next message on; what is left out stays. What it sent today counts.
 * Throws RequestError: `invalid_value`, `unknown_key`, also for a key of another WABA.
 */
export async function limitSends(
  { database, actor }: KeyTools & Audited,
  wabaId: string,
  keyId: string,
  given: GivenSendLimits,
): Promise<{ id: string } & SendLimits> {
  const id = checkRowId('The id of the key', keyId);
  return await database.transaction(async (trx) => {
    const limits = checkSendLimits(given, await keyOf({ database: trx }, wabaId, id));
    await saveSendLimits(trx, wabaId, id, limits);
    await recordChange(trx, actor, { wabaId, action: 'key.limited', target: nameOf(id), detail: limits });
    return { id, ...limits };
  });
}

/** For operators, who name a key by its id alone. Throws RequestError: `invalid_value`, `unknown_key`. */
export async function wabaOfKey({ database }: KeyTools, keyId: string): Promise<string> {
  const wabaId = await findWabaOfKey(database, checkRowId('The id of the key', keyId));
  if (wabaId === null) throw unknownKey(keyId);
  return wabaId;
}

/** One key of a WABA. Throws RequestError: `invalid_value`, `unknown_key`. */
export async function keyOf({ database }: KeyTools, wabaId: string, keyId: string): Promise<ApiKeyDetails> {
  const key = await findApiKeyDetails(database, wabaId, checkRowId('The id of the key', keyId));
  if (key === null) throw unknownKey(keyId);
  return key;
}

/** The keys of a WABA. Throws RequestError: `invalid_value`, `unknown_waba`. */
export async function listKeys({ database }: KeyTools, wabaId: string): Promise<ApiKeyDetails[]> {
  await knownWaba(database, wabaId);
  return await listApiKeys(database, wabaId);
}

/** A second time changes nothing and tells when it was. Throws RequestError `unknown_key`, also for another WABA's. */
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

function nameOf(keyId: string): string {
  return `API key ${keyId}`;
}

function unknownKey(keyId: string): RequestError {
  return new RequestError('unknown_key', `There is no API key ${keyId}.`);
}
