import { dropWaiting } from '../deliveries/queue/drop-waiting.ts';
import { type Audited, recordChange } from '../platform/audit/audit.ts';
import type { Database } from '../platform/postgres/database.ts';
import { holdEndpoint } from './endpoint-modes.ts';
import { endpointName, unknownEndpoint } from './endpoints.ts';
import { deleteEndpointRow, isPast } from './store.ts';

/** Longer than the database lets a statement of a publisher take. */
const PUBLISHERS_MS = 30_000;
const POLL_MS = 20;

/**
 * Deletes an endpoint: switches it off, drops what waits for it, removes it. The log of its deliveries and attempts
 * stays. Returns how many deliveries were dropped. When it is cut off before the endpoint is gone, it can be repeated.
 * Throws RequestError: `invalid_value`, `unknown_endpoint`.
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
  const waiting = await dropWaiting(database, wabaId, endpointId, { reason });
  const xid = await database.transaction(async (trx) => {
    const deletedBy = await deleteEndpointRow(trx, wabaId, endpointId);
    if (deletedBy === null) throw unknownEndpoint(endpointId);
    const detail = { dropped: waiting.dropped };
    const target = endpointName(endpointId);
    await recordChange(trx, actor, { wabaId, action: 'endpoint.deleted', target, detail });
    return deletedBy;
  });
  await publishersGone(database, xid);
  const late = await dropWaiting(database, wabaId, endpointId, { reason, underWayToo: true });
  return { id: endpointId, dropped: waiting.dropped + late.dropped };
}

/** Waits for transactions that may still queue deliveries for the endpoint, because they saw it before it was gone. */
async function publishersGone(database: Database, xid: string): Promise<void> {
  const deadlineMs = performance.now() + PUBLISHERS_MS;
  while (!(await isPast(database, xid)) && performance.now() < deadlineMs) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
