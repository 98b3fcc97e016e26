import { randomUUID } from 'node:crypto';
import type { ClaimedDelivery } from '../../src/engine/queue/claim.ts';
import { type Claim, type SettledDelivery, settleDeliveries } from '../../src/engine/queue/settle.ts';
import type { Database, Transaction } from '../../src/platform/postgres/database.ts';
import { execute, query } from '../../src/platform/postgres/sql.ts';

/** Records that these claims were delivered, as production does; returns the ids of those that were still in force. */
export async function settleDelivered(database: Database, claims: readonly Claim[]): Promise<string[]> {
  const rows = await query<{ id: string; day: string; endpointId: string; attempts: number }>(
    database,
    `select delivery_id as id, delivery_day as day, endpoint_id as "endpointId", attempts from delivery_queue
      where delivery_id = any (:deliveryIds::uuid[])`,
    { deliveryIds: claims.map(({ deliveryId }) => deliveryId) },
  );
  const found = new Map(rows.map((row) => [row.id, row]));
  const settled = claims.map(({ deliveryId, token }) => {
    const row = found.get(deliveryId);
    return delivered(
      { deliveryId, token },
      row?.day ?? '2026-01-01',
      row?.endpointId ?? '0',
      row?.attempts ?? 0,
    );
  });
  const { ours } = await settleDeliveries(database, settled, { worker: 'test', claim: null });
  return [...ours];
}

/** Records that these were delivered and claims those behind them, which are returned. */
export async function settleAndFollow(
  database: Database,
  deliveries: readonly ClaimedDelivery[],
  token: string,
): Promise<ClaimedDelivery[]> {
  const settled = deliveries.map(({ deliveryId, deliveryDay, endpointId, attempts }) =>
    delivered({ deliveryId, token }, deliveryDay, endpointId, attempts),
  );
  const behind = new Set(deliveries.map(({ deliveryId }) => deliveryId));
  const claim = { token, leaseMs: 60_000, behind };
  return (await settleDeliveries(database, settled, { worker: 'test', claim })).followers;
}

/** Records that these failed and wait for their next attempt. */
export async function settleFailed(
  database: Database,
  deliveries: readonly ClaimedDelivery[],
  token: string,
): Promise<void> {
  const settled = deliveries.map(({ deliveryId, deliveryDay, endpointId, attempts }) => ({
    ...delivered({ deliveryId, token }, deliveryDay, endpointId, attempts),
    nextState: 'retrying' as const,
    delayMs: 60_000,
    logState: 'pending' as const,
    statusCode: 500,
  }));
  await settleDeliveries(database, settled, { worker: 'test', claim: null });
}

const NO_TIMINGS = {
  dnsMs: null,
  connectMs: null,
  tlsMs: null,
  firstByteMs: null,
  totalMs: 1,
  reused: true,
};

function delivered(claim: Claim, deliveryDay: string, endpointId: string, attempts: number): SettledDelivery {
  return {
    ...claim,
    deliveryDay,
    nextState: null,
    attempt: attempts + 1,
    probes: 0,
    delayMs: null,
    run: null,
    logState: 'delivered',
    error: null,
    workflowId: null,
    wabaId: '',
    endpointId,
    startedAt: new Date(),
    ...NO_TIMINGS,
    statusCode: 200,
    errorClass: null,
    errorMessage: null,
    url: '',
    remoteAddress: null,
    customHeaders: null,
    responseHeadersJson: null,
    responseBody: null,
  };
}

/** Claims these heads, whatever they wait for, and settles them as delivered. */
export async function deliverHeads(trx: Transaction, deliveryIds: readonly string[]): Promise<void> {
  const token = randomUUID();
  await execute(
    trx,
    `update delivery_queue set state = 'claimed', token = :token, lease_until = clock_timestamp() + interval '1 minute'
      where delivery_id = any (:deliveryIds::uuid[]) and state <> 'queued'`,
    { token, deliveryIds },
  );
  const claims = deliveryIds.map((deliveryId) => ({ deliveryId, token }));
  await settleDelivered(trx, claims);
}
