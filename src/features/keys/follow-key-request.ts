import type { Database } from '../../platform/postgres/database.ts';
import { finishKeyRequest, type KeyRequest, lockKeyRequest, saveReminders } from './key-request-store.ts';
import { expireOverdue } from './key-requests.ts';

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

const REMINDERS_AFTER_MS = [DAY_MS, 3 * DAY_MS];

/** Beyond this the row is looked at again, whatever its times say. */
const MAX_WAIT_MS = 24 * HOUR_MS;
const MIN_WAIT_MS = 1_000;

export type FollowedRequest = {
  request: KeyRequest;
  /** The number of a reminder that is due now; null: none. */
  reminder: number | null;
  isOver: boolean;
  /** How long nothing will happen by itself. */
  waitMs: number;
};

/**
 * What time has done to a request: expired, or due for a reminder. Ends the task of one that is over. `now` is for
 * tests of the reminders; expiry goes by the clock of the database. Null: there is no such request.
 */
export async function followKeyRequest(
  { database, now = Date.now }: { database: Database; now?: () => number },
  wabaId: string,
  requestId: string,
): Promise<FollowedRequest | null> {
  return await database.transaction(async (trx) => {
    await expireOverdue(trx, wabaId);
    const request = await lockKeyRequest(trx, wabaId, requestId);
    if (request === null) return null;
    const isOver = request.state !== 'requested' && request.state !== 'approved';
    if (isOver) await finishKeyRequest(trx, requestId);
    const due = request.state === 'requested' ? remindersDue(request, now()) : request.reminders;
    if (due > request.reminders) await saveReminders(trx, requestId, due);
    const reminder = due > request.reminders ? due : null;
    return { request: { ...request, reminders: due }, reminder, isOver, waitMs: waitMsOf(request, now()) };
  });
}

function remindersDue({ createdAt }: KeyRequest, now: number): number {
  return REMINDERS_AFTER_MS.filter((afterMs) => createdAt.getTime() + afterMs <= now).length;
}

function waitMsOf({ state, createdAt, decideUntil, revealUntil }: KeyRequest, now: number): number {
  const reminders = state === 'requested' ? REMINDERS_AFTER_MS.map((ms) => createdAt.getTime() + ms) : [];
  const end = state === 'requested' ? decideUntil : (revealUntil ?? decideUntil);
  const times = [...reminders, end.getTime()].map((time) => time - now).filter((waitMs) => waitMs > 0);
  return Math.max(MIN_WAIT_MS, Math.min(MAX_WAIT_MS, ...times));
}

/** What operators read of a request in the Temporal UI: ids and times, because an erasure does not reach histories. */
export type RequestDescription = {
  summary: string;
  /** Markdown. */
  details: string;
  memo: Record<string, string>;
};

export function describeRequest(request: KeyRequest): RequestDescription {
  const { id, wabaId } = request;
  const summary = summaryOf(request);
  const facts = {
    requestedBy: `user ${request.requesterId} of WABA ${wabaId}`,
    scopes: request.scopes.join(', '),
    worksFor: request.validDays === null ? 'until it is revoked' : `${request.validDays} days`,
    replaces: replacedOf(request),
  };
  const list = [
    ['Asked by', facts.requestedBy],
    ['Scopes', facts.scopes],
    ['Works', facts.worksFor],
    ['Replaces', facts.replaces],
  ].map(([name, value]) => `- ${name}: ${value}`);
  const details = [`**Request ${id} for an API key.** ${summary}`, list.join('\n'), nextStep(request)];
  return { summary, details: details.filter((part) => part !== '').join('\n\n'), memo: facts };
}

function summaryOf({ state, decideUntil, revealUntil, decidedAt }: KeyRequest): string {
  switch (state) {
    case 'requested':
      return `It waits for an operator until ${timeText(decideUntil)}.`;
    case 'approved':
      return `Approved. The key can be revealed until ${timeText(revealUntil ?? decideUntil)}.`;
    case 'denied':
      return 'Denied.';
    case 'expired':
      return decidedAt === null
        ? 'Expired without a decision.'
        : 'Expired: the key was not revealed in time.';
    case 'revealed':
      return 'The key was revealed.';
    case 'withdrawn':
      return 'Withdrawn by its requester.';
  }
}

function replacedOf({ replacesKeyId, overlapHours }: KeyRequest): string {
  if (replacesKeyId === null) return 'nothing';
  const end = overlapHours === null ? 'is revoked' : `${overlapHours} hours after the reveal`;
  return `key ${replacesKeyId}, which works until ${overlapHours === null ? `it ${end}` : end}`;
}

function nextStep({ state }: KeyRequest): string {
  if (state === 'requested')
    return 'The portal (*Approvals*) and `admin key-request list` say who asks, and for what. Decide there.';
  return state === 'approved' ? 'Denying it there takes the approval back.' : '';
}

function timeText(time: Date): string {
  return `${time.toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
