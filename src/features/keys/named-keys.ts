import { type Audited, recordChange } from '../../platform/audit/audit.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { RequestError } from '../../platform/request-input.ts';
import { checkReference } from '../accounts/external-tenants.ts';
import { type ApiKeyDetails, endApiKeyWithin, findKeyByRef, freeKeyRef } from './api-key-store.ts';
import { checkNetworks, checkScopes, createKey, revokeKey } from './api-keys.ts';

type Tools = { database: Transaction } & Audited;

export type NamedKey = {
  name: string;
  scopes: readonly string[];
  expiresAt: Date | null;
  allowedNetworks: readonly string[] | null;
};

/** `apiKey` is null but for the call that made the key: only its hash is stored. */
export type PutKey = ApiKeyDetails & { keyRef: string; apiKey: string | null };

/**
 * Makes the key that a program calls `keyRef`, once; `mayGive` refuses scopes, `countNew` one key too many.
 * Throws RequestError as `createKey`, and `key_differs` where the key has other values.
 */
export async function putKey(
  tools: Tools,
  wabaId: string,
  keyRef: string,
  given: NamedKey,
  {
    mayGive,
    countNew,
  }: { mayGive(scopes: readonly string[]): void; countNew(trx: Transaction): Promise<void> },
): Promise<{ made: boolean; key: PutKey }> {
  const ref = checkReference('keyRef', keyRef);
  const scopes = checkScopes(given.scopes);
  mayGive(scopes);
  const known = await findKeyByRef(tools.database, wabaId, ref);
  if (known !== null) {
    const differs = differenceTo(known, { ...given, scopes });
    if (differs === null) return { made: false, key: { ...known, keyRef: ref, apiKey: null } };
    const message = `The key ${ref} has another value of ${differs}. Delete it, or use another keyRef.`;
    throw new RequestError('key_differs', message, differs);
  }
  const { apiKey } = await createKey(tools, wabaId, { ...given, scopes, ref });
  await countNew(tools.database);
  return { made: true, key: { ...(await namedKey(tools.database, wabaId, ref)), apiKey } };
}

/** What a key may do. Its name and expiry are those of the call that made it, so that a repetition may reckon the expiry once more. */
function differenceTo(known: ApiKeyDetails, given: NamedKey): 'scopes' | 'allowedNetworks' | null {
  if (known.scopes.join() !== given.scopes.join()) return 'scopes';
  return known.allowedNetworks?.join() === checkNetworks(given.allowedNetworks)?.join()
    ? null
    : 'allowedNetworks';
}

/**
 * Makes another key with what the present one of this name has, valid for as long as that one was; the present one ends within some
 * hours. Throws RequestError as `putKey`, and `unknown_key`.
 */
export async function rotateKey(
  tools: Tools,
  wabaId: string,
  keyRef: string,
  overlapHours: number,
  { mayGive, countNew }: Parameters<typeof putKey>[4],
): Promise<PutKey & { replacedKeyId: string; replacedEndsAt: Date | null }> {
  const { database, actor } = tools;
  const before = await namedKey(database, wabaId, keyRef);
  mayGive(before.scopes);
  await freeKeyRef(database, wabaId, before.id);
  const { createdAt, expiresAt: end, keyRef: ref } = before;
  const expiresAt = end === null ? null : new Date(Date.now() + end.getTime() - createdAt.getTime());
  const { apiKey, id: replacedBy } = await createKey(tools, wabaId, { ...before, expiresAt, ref });
  await countNew(database);
  const replacedEndsAt = await endApiKeyWithin(database, wabaId, before.id, overlapHours);
  const detail = { replacedBy, endsAt: replacedEndsAt?.toISOString() ?? null };
  await recordChange(database, actor, {
    wabaId,
    action: 'key.rotated',
    target: `API key ${before.id}`,
    detail,
  });
  const key = await namedKey(database, wabaId, keyRef);
  return { ...key, apiKey, replacedKeyId: before.id, replacedEndsAt };
}

/** Revokes a key, whose name is free afterwards. Throws RequestError: `invalid_value`, `unknown_key`. */
export async function deleteNamedKey(
  tools: Tools,
  wabaId: string,
  keyRef: string,
): Promise<{ id: string; revokedAt: Date }> {
  const { id } = await namedKey(tools.database, wabaId, keyRef);
  await freeKeyRef(tools.database, wabaId, id);
  return await revokeKey(tools, wabaId, id);
}

async function namedKey(database: Database, wabaId: string, keyRef: string): Promise<PutKey> {
  const ref = checkReference('keyRef', keyRef);
  const key = await findKeyByRef(database, wabaId, ref);
  if (key === null) throw new RequestError('unknown_key', 'There is no such API key.');
  return { ...key, keyRef: ref, apiKey: null };
}
