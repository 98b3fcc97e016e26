import { deleteEndpointRow, lockEndpoint, setEndpointMode } from '../../engine/endpoint/store.ts';
import { wakeDispatcher } from '../../engine/queue/enqueue.ts';
import { haveEnded, openPublishers } from '../../engine/queue/publishing-locks.ts';
import { dropWaiting } from '../../engine/queue/remove.ts';
import { countWaiting, shownCount } from '../../engine/queue/waiting.ts';
import { type Audited, recordChange } from '../../platform/audit/audit.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { checkDescription, RequestError } from '../../platform/request-input.ts';
import { endpointName, knownEndpoint, unknownEndpoint } from './endpoints.ts';

type Tools = { database: Database } & Audited;

/**
 * By wish (`paused`) or because the endpoint is out of order (`disabled`); no event is lost. Throws RequestError: `invalid_value`,
 * `unknown_endpoint`.
 */
export async function holdEndpoint(
  tools: Tools,
  wabaId: string,
  change: { id: string; mode: 'paused' | 'disabled'; reason: string },
): Promise<void> {
  await knownEndpoint(tools.database, wabaId, change.id);
  const reason = checkDescription('The reason', change.reason);
  const given = reason === '' ? null : reason;
  const detail = { reason: given };
  await switchTo(tools, wabaId, { ...change, reason: given, action: `endpoint.${change.mode}`, detail });
}

export type Enabling = {
  id: string;
  /** Deliveries that wait are sent first, or never. Null: nothing may be waiting. */
  waiting: 'send' | 'drop' | null;
  /** For the log of the deliveries that are dropped: "an operator". */
  by: string;
};

/**
 * What waits is dropped before anything is sent; what arrives meanwhile stays. Returns how many were dropped. Throws RequestError:
 * `invalid_value`, `unknown_endpoint`, `waiting_choice_required`.
 */
export async function enableEndpoint(
  tools: Tools,
  wabaId: string,
  { id, waiting, by }: Enabling,
): Promise<{ dropped: number }> {
  const { database } = tools;
  const { mode } = await knownEndpoint(database, wabaId, id);
  if (waiting === null && mode !== 'open') await refuseIfAnyWaits(database, id);
  const reason = `dropped by ${by} when the endpoint was enabled`;
  // What is pending at an open endpoint waits for no choice.
  const { dropped } =
    waiting === 'drop' && mode !== 'open' ? await dropWaiting(database, id, { reason }) : { dropped: 0 };
  const change = { id, mode: 'open' as const, reason: null };
  await switchTo(tools, wabaId, { ...change, action: 'endpoint.enabled', detail: { waiting, dropped } });
  wakeDispatcher(database);
  return { dropped };
}

async function refuseIfAnyWaits(database: Database, id: string): Promise<void> {
  const waiting = (await countWaiting(database, [id])).get(id);
  if (waiting === undefined || waiting.count === 0) return;
  const number = shownCount(waiting);
  throw new RequestError(
    'waiting_choice_required',
    `${number} ${number === '1' ? 'delivery waits' : 'deliveries wait'} for endpoint ${id}: ` +
      'choose "send" to send the pending deliveries first, in order, or "drop" to drop them permanently.',
  );
}

type Switch = {
  id: string;
  mode: 'open' | 'paused' | 'disabled';
  reason: string | null;
  action: string;
  detail: Record<string, string | number | null>;
};

async function switchTo(
  { database, actor }: Tools,
  wabaId: string,
  { action, detail, ...change }: Switch,
): Promise<void> {
  await database.transaction(async (trx) => {
    if (!(await lockEndpoint(trx, wabaId, change.id))) throw unknownEndpoint(change.id);
    await setEndpointMode(trx, change);
    await recordChange(trx, actor, { wabaId, action, target: endpointName(change.id), detail });
  });
}

/** Longer than the database lets a statement of a publisher take. */
const PUBLISHERS_MS = 30_000;
const POLL_MS = 20;

/**
 * Switches the endpoint off, drops what waits for it, removes it; the log of its deliveries stays. Returns how many were dropped. When it
 * is cut off before the endpoint is gone, it can be repeated. Throws RequestError: `invalid_value`, `unknown_endpoint`.
 */
export async function deleteEndpoint(
  { database, actor }: { database: Database } & Audited,
  wabaId: string,
  endpointId: string,
): Promise<{ id: string; dropped: number }> {
  const reason = 'dropped: the endpoint was deleted';
  await holdEndpoint({ database, actor }, wabaId, {
    id: endpointId,
    mode: 'disabled',
    reason: 'being deleted',
  });
  const waiting = await dropWaiting(database, endpointId, { reason });
  await database.transaction(async (trx) => {
    if (!(await deleteEndpointRow(trx, wabaId, endpointId))) throw unknownEndpoint(endpointId);
    const detail = { dropped: waiting.dropped };
    const target = endpointName(endpointId);
    await recordChange(trx, actor, { wabaId, action: 'endpoint.deleted', target, detail });
    trx.notify('heliograph_endpoints', endpointId);
  });
  await publishersGone(database);
  const late = await dropWaiting(database, endpointId, { reason, underWayToo: true });
  return { id: endpointId, dropped: waiting.dropped + late.dropped };
}

/** Transactions that saw the endpoint before it was gone may still queue deliveries for it. */
async function publishersGone(database: Database): Promise<void> {
  const deadlineMs = performance.now() + PUBLISHERS_MS;
  const publishers = await openPublishers(database);
  while (!(await haveEnded(database, publishers)) && performance.now() < deadlineMs) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
