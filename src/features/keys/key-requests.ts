import { type Audited, recordChange, SYSTEM } from '../../platform/audit/audit.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import {
  checkDescription,
  checkingMember,
  checkName,
  checkRowId,
  invalidValue,
  RequestError,
} from '../../platform/request-input.ts';
import { knownWaba } from '../accounts/accounts.ts';
import { findApiKeyDetails } from './api-key-store.ts';
import { checkNetworks, checkScopes } from './api-keys.ts';
import {
  countKeyRequests,
  countUndecided,
  expireKeyRequests,
  findKeyRequest,
  insertKeyRequest,
  type KeyRequest,
  listKeyRequests,
  listPastKeyRequests,
  listWaitingKeyRequests,
  lockKeyRequest,
  lockKeyRequestsOf,
  type NewKeyRequest,
  saveDecision,
  saveWithdrawal,
} from './key-request-store.ts';
import { checkSendLimits, type GivenSendLimits } from './send-limits.ts';

const DECIDE_WITHIN_DAYS = 7;
const REVEAL_WITHIN_DAYS = 7;
/** Each is decided by a person, who cannot read more. */
const MAX_OPEN = 5;
const MAX_PER_DAY = 20;
const MAX_LISTED = 100;

type Tools = { database: Database };

/** A user of the portal who asks; `name` is what operators read: an e-mail address. */
export type Requester = { id: string; name: string };

/**
 * Asks for an API key, which an operator approves or denies within 7 days.
 * Throws RequestError: `invalid_value`, `unknown_waba`, `unknown_key`, `key_not_active`, `key_request_open`,
 * `too_many_key_requests`.
 */
export async function requestKey(
  { database, actor }: Tools & Audited,
  wabaId: string,
  requester: Requester,
  given: GivenKeyRequest,
): Promise<KeyRequest> {
  const { tenantId } = await knownWaba(database, wabaId);
  const wanted = await checkKeyRequest(database, wabaId, given);
  return await database.transaction(async (trx) => {
    await expireOverdue(trx, wabaId);
    await refuseTooMany(trx, wabaId, requester.id);
    const row = { ...wanted, tenantId, wabaId, requesterId: requester.id, requester: requester.name };
    // An erasure does not reach Temporal: the portal has the name and the purpose.
    const summary = `user ${requester.id} asks for an API key`;
    const id = await insertKeyRequest(trx, row, { decideWithinDays: DECIDE_WITHIN_DAYS, summary });
    const { purpose, scopes, allowedNetworks, ...others } = wanted;
    const networks = allowedNetworks?.join(', ') ?? null;
    const detail = { purpose, scopes: scopes.join(', '), networks, ...others };
    await recordChange(trx, actor, { wabaId, action: 'key_request.created', target: nameOf(id), detail });
    return await lockedRequest(trx, wabaId, id);
  });
}

async function refuseTooMany(trx: Transaction, wabaId: string, requesterId: string): Promise<void> {
  const { open, own, lastDay } = await countKeyRequests(trx, wabaId, requesterId);
  if (own > 0) {
    throw new RequestError(
      'key_request_open',
      'You have a pending request for this WABA; reveal its key or withdraw it before you ask for another one.',
    );
  }
  if (open >= MAX_OPEN) throw tooMany(`This WABA has ${open} pending requests; wait until they are decided.`);
  if (lastDay >= MAX_PER_DAY) throw tooMany('This WABA has asked for many keys today; ask again tomorrow.');
}

/**
 * The newest requests of a WABA, or those before one; with null, of all, for operators.
 * Throws RequestError: `invalid_value`, `unknown_waba`.
 */
export async function keyRequestsOf(
  { database }: Tools,
  wabaId: string | null,
  { beforeId = null as string | null, limit = MAX_LISTED } = {},
): Promise<KeyRequest[]> {
  if (wabaId !== null) await knownWaba(database, wabaId);
  if (beforeId !== null) checkRequestId(beforeId);
  return await listKeyRequests(database, wabaId, { beforeId, limit });
}

/** One request of a WABA; with null, of any, for operators. Throws RequestError: `invalid_value`, `unknown_key_request`. */
export async function keyRequestOf(
  { database }: Tools,
  wabaId: string | null,
  requestId: string,
): Promise<KeyRequest> {
  const request = await findKeyRequest(database, wabaId, checkRequestId(requestId));
  if (request === null) throw unknownRequest(requestId);
  return request;
}

/** For operators: what waits for a decision, the oldest first; up to 100. */
export async function waitingKeyRequests({ database }: Tools): Promise<KeyRequest[]> {
  return await listWaitingKeyRequests(database, MAX_LISTED);
}

/** For operators: the newest of those that no longer wait for a decision, or those before one. */
export async function pastKeyRequests(
  { database }: Tools,
  { beforeId = null as string | null, limit = MAX_LISTED } = {},
): Promise<KeyRequest[]> {
  if (beforeId !== null) checkRequestId(beforeId);
  return await listPastKeyRequests(database, { beforeId, limit });
}

/** How many wait for a decision; up to 100. */
export async function countWaitingKeyRequests({ database }: Tools): Promise<number> {
  return await countUndecided(database, MAX_LISTED);
}

/**
 * Approves or denies a request, for an operator, who may change what the key may send. Denying takes back an approval too, as long as the key was not
 * revealed. Throws RequestError: `invalid_value`, `unknown_key_request`, `key_request_over`.
 */
export async function decideKeyRequest(
  { database, actor }: Tools & Audited,
  requestId: string,
  decision: { state: 'approved' | 'denied'; note: string; limits?: GivenSendLimits },
): Promise<KeyRequest> {
  const { state } = decision;
  const note = await checkNote(decision.note);
  const { wabaId } = await keyRequestOf({ database }, null, requestId);
  return await database.transaction(async (trx) => {
    const request = await lockedRequest(trx, wabaId, requestId);
    const isOpen = request.state === 'requested' || (request.state === 'approved' && state === 'denied');
    if (!isOpen) throw over(request, `it cannot be ${state} now`);
    const by = actor.name;
    const limits = checkSendLimits(state === 'approved' ? (decision.limits ?? {}) : {}, request);
    await saveDecision(trx, requestId, { state, by, note, ...limits, revealWithinDays: REVEAL_WITHIN_DAYS });
    const detail = { note, ...(state === 'approved' && limits) };
    const change = { wabaId, action: `key_request.${state}`, target: nameOf(requestId), detail };
    await recordChange(trx, actor, change);
    return await lockedRequest(trx, wabaId, requestId);
  });
}

/**
 * Takes a request back, also one that was approved and not revealed; only its requester may.
 * Throws RequestError: `invalid_value`, `unknown_key_request`, `not_the_requester`, `key_request_over`.
 */
export async function withdrawKeyRequest(
  { database, actor }: Tools & Audited,
  wabaId: string,
  requestId: string,
  requesterId: string,
): Promise<void> {
  await database.transaction(async (trx) => {
    const request = await lockedRequest(trx, wabaId, checkRequestId(requestId));
    if (request.requesterId !== requesterId) {
      throw new RequestError('not_the_requester', `Only ${request.requester} can withdraw this request.`);
    }
    if (request.state !== 'requested' && request.state !== 'approved') {
      throw over(request, 'there is nothing to withdraw');
    }
    await saveWithdrawal(trx, requestId);
    const change = { wabaId, action: 'key_request.withdrawn', target: nameOf(requestId) };
    await recordChange(trx, actor, change);
  });
}

/** Notes for the requests of a WABA whose time is over that it is; one transaction at a time does so. */
export async function expireOverdue(trx: Transaction, wabaId: string): Promise<void> {
  await lockKeyRequestsOf(trx, wabaId);
  for (const { id, decidedAt } of await expireKeyRequests(trx, wabaId)) {
    const detail = { reason: decidedAt === null ? 'no decision in time' : 'not revealed in time' };
    const change = { wabaId, action: 'key_request.expired', target: nameOf(id), detail };
    await recordChange(trx, SYSTEM, change);
  }
}

/** A request, locked until the transaction ends. Throws RequestError `unknown_key_request`. */
export async function lockedRequest(
  trx: Transaction,
  wabaId: string,
  requestId: string,
): Promise<KeyRequest> {
  const request = await lockKeyRequest(trx, wabaId, requestId);
  if (request === null) throw unknownRequest(requestId);
  return request;
}

export function nameOf(requestId: string): string {
  return `key request ${requestId}`;
}

export function checkRequestId(requestId: string): string {
  return checkRowId('The id of the request', requestId);
}

function over({ id, state }: KeyRequest, consequence: string): RequestError {
  return new RequestError('key_request_over', `The request ${id} is ${state}: ${consequence}.`);
}

function unknownRequest(requestId: string): RequestError {
  return new RequestError('unknown_key_request', `There is no request ${requestId} for an API key.`);
}

function tooMany(message: string): RequestError {
  return new RequestError('too_many_key_requests', message);
}

/** What is asked for; left out: reading only, from anywhere (as without networks), no limit, no end, no key replaced. */
export type GivenKeyRequest = Pick<NewKeyRequest, 'purpose'> &
  Partial<Pick<NewKeyRequest, 'validDays' | 'replacesKeyId' | 'overlapHours' | 'allowedNetworks'>> &
  GivenSendLimits & { scopes?: readonly string[] };

const MAX_VALID_DAYS = 3_650;
const MAX_OVERLAP_HOURS = 90 * 24;

/** What was asked for, checked. Throws RequestError: `invalid_value`, `unknown_key`, `key_not_active`. */
async function checkKeyRequest(database: Database, wabaId: string, given: GivenKeyRequest) {
  const replacesKeyId = given.replacesKeyId ?? null;
  const overlapHours = given.overlapHours ?? null;
  const wanted = {
    purpose: await checkingMember('purpose', () => checkName('The purpose', given.purpose)),
    scopes: await checkingMember('scopes', () => checkScopes(given.scopes)),
    allowedNetworks: await checkingMember('allowedNetworks', () =>
      checkNetworks(given.allowedNetworks ?? null),
    ),
    validDays: checkWhole('validDays', 'The days that a key works', given.validDays ?? null, {
      min: 1,
      max: MAX_VALID_DAYS,
    }),
    ...checkSendLimits(given),
    replacesKeyId,
    overlapHours: checkWhole('overlapHours', 'The hours that the replaced key works on', overlapHours, {
      min: 0,
      max: MAX_OVERLAP_HOURS,
    }),
  };
  if (replacesKeyId !== null) {
    await checkingMember('replacesKeyId', () => checkReplaced(database, wabaId, replacesKeyId));
  } else if (overlapHours !== null) {
    throw invalidValue('Without a key to replace there is no overlap.', 'overlapHours');
  }
  return wanted;
}

/** The note of a decision; null when there is none. Throws RequestError `invalid_value`. */
async function checkNote(text: string): Promise<string | null> {
  const note = await checkingMember('note', () => checkDescription('The note', text));
  return note === '' ? null : note;
}

async function checkReplaced(database: Database, wabaId: string, keyId: string): Promise<void> {
  const key = await findApiKeyDetails(database, wabaId, checkRowId('The id of the key', keyId));
  if (key === null) throw new RequestError('unknown_key', `There is no API key ${keyId}.`);
  if (key.state === 'active') return;
  throw new RequestError('key_not_active', `API key ${keyId} is ${key.state}: there is nothing to replace.`);
}

function checkWhole(
  param: string,
  what: string,
  number: number | null,
  { min, max }: { min: number; max: number },
): number | null {
  if (number === null || (Number.isInteger(number) && number >= min && number <= max)) return number;
  throw invalidValue(`${what} must be a whole number from ${min} to ${max}.`, param);
}
