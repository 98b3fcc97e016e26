import { type Audited, recordChange } from '../../platform/audit/audit.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { RequestError } from '../../platform/request-input.ts';
import { endApiKeyWithin } from './api-key-store.ts';
import { type CreatedKey, createKey } from './api-keys.ts';
import { type KeyRequest, saveReveal } from './key-request-store.ts';
import { checkRequestId, lockedRequest, nameOf } from './key-requests.ts';

const DAY_MS = 86_400_000;

/** The key, this once, and until when the one that it replaces works; null: until it is revoked, or there is none. */
export type RevealedKey = CreatedKey & { replacesKeyId: string | null; replacedEndsAt: Date | null };

/**
 * Makes the key of an approved request and returns it, this once: state and key change in one transaction, and the
 * key itself is kept nowhere. Throws RequestError: `invalid_value`, `unknown_key_request`, `key_already_revealed`,
 * `key_not_approved`.
 */
export async function revealKey(
  { database, actor }: { database: Database } & Audited,
  wabaId: string,
  requestId: string,
): Promise<RevealedKey> {
  return await database.transaction(async (trx) => {
    const request = await lockedRequest(trx, wabaId, checkRequestId(requestId));
    if (request.state !== 'approved') throw refusalOf(request);
    const { purpose: name, scopes, allowedNetworks, validDays, replacesKeyId } = request;
    const { maxMessagesPerDay, recipients } = request;
    const expiresAt = validDays === null ? null : new Date(Date.now() + validDays * DAY_MS);
    const key = await createKey({ database: trx, actor }, wabaId, {
      name,
      scopes,
      allowedNetworks,
      maxMessagesPerDay,
      recipients,
      expiresAt,
    });
    const replacedEndsAt = await endReplaced(trx, request);
    await saveReveal(trx, requestId, { apiKeyId: key.id, by: actor.name });
    const detail = {
      keyId: key.id,
      prefix: key.prefix,
      replacesKeyId,
      replacedEndsAt: replacedEndsAt?.toISOString() ?? null,
    };
    const change = { wabaId, action: 'key_request.revealed', target: nameOf(requestId), detail };
    await recordChange(trx, actor, change);
    return { ...key, replacesKeyId, replacedEndsAt };
  });
}

async function endReplaced(
  trx: Transaction,
  { wabaId, replacesKeyId, overlapHours }: KeyRequest,
): Promise<Date | null> {
  if (replacesKeyId === null || overlapHours === null) return null;
  return await endApiKeyWithin(trx, wabaId, replacesKeyId, overlapHours);
}

function refusalOf({ id, state, finishedAt, revealedBy, apiKeyId }: KeyRequest): RequestError {
  if (state !== 'revealed') {
    return new RequestError('key_not_approved', `The request ${id} is ${state}: it has no key to reveal.`);
  }
  return new RequestError(
    'key_already_revealed',
    `This key was revealed ${finishedAt?.toISOString() ?? ''} by ${revealedBy}, and is not shown again. ` +
      `If it was not kept, revoke API key ${apiKeyId} and ask for a new one.`,
  );
}
