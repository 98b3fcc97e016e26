import { publishEvents } from '../../../src/deliveries/publish.ts';
import type { EventType } from '../../../src/platform/event-type.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { publicDeliveryId } from '../../../src/platform/public-ids.ts';
import { deliverHeads } from '../../support/settle-rows.ts';

/** Publishes `count` events over `keys` ordering keys, in one transaction, as intake does with a large batch. */
export async function publish(
  database: Database,
  wabaId: string,
  { count, keys, type = 'message' }: { count: number; keys: number; type?: EventType },
): Promise<void> {
  const [waba] = await query<{ tenantId: string }>(
    database,
    'select tenant_id as "tenantId" from wabas where waba_id = ?',
    [wabaId],
  );
  const tenantId = waba?.tenantId ?? '';
  const events = Array.from({ length: count }, (_, index) => ({
    ...{ wabaId, tenantId, phoneNumberId: '800000000000111', type, conversationId: null, messageId: null },
    eventId: `key-${index % keys}`,
    laneKey: `key-${index % keys}`,
    dataJson: `{"n":${index}}`,
  }));
  await database.transaction((trx) => publishEvents(trx, events, new Date()));
}

/** Ends everything that is queued for live deliveries. */
export async function settleLive(
  database: Database,
  state: 'delivered' | 'failed' | 'dropped',
): Promise<void> {
  await execute(
    database,
    `update deliveries d set state = ?, finished_at = now() from delivery_queue q
      where q.delivery_id = d.id and not q.replay`,
    [state],
  );
  await execute(database, 'delete from delivery_queue where not replay');
}

export type Sent = {
  deliveryId: string;
  endpointId: string;
  lane: string;
  sequence: number;
  eventUuid: string;
};

/**
 * Delivers what is due of replays, as a receiver that accepts everything would make it: heads only, the next of a lane
 * after the one before. Returns what was sent, in that order.
 */
export async function deliverReplays(
  database: Database,
  limit = 10_000,
  endpointId: string | null = null,
): Promise<Sent[]> {
  const sent: Sent[] = [];
  while (sent.length < limit) {
    const batch = await database.transaction(async (trx) => {
      const heads = await query<Sent & { n: number }>(
        trx,
        `select q.delivery_id as "deliveryId", q.endpoint_id as "endpointId", ev.lane, ev.sequence::integer as sequence,
                q.event_uuid as "eventUuid"
           from delivery_queue q join events ev on ev.day = q.event_day and ev.id = q.event_uuid
          where q.replay and q.state = 'due' and (cast(:endpointId as bigint) is null or q.endpoint_id = :endpointId)
          order by q.endpoint_id, q.lane limit :limit for update of q skip locked`,
        { endpointId, limit: Math.min(200, limit - sent.length) },
      );
      const ids = heads.map((head) => head.deliveryId);
      await deliverHeads(trx, ids);
      return heads;
    });
    if (batch.length === 0) break;
    sent.push(...batch);
  }
  return sent;
}

/** Public ids of the original deliveries, in their order. */
export async function originalIds(database: Database, wabaId: string): Promise<string[]> {
  const rows = await query<{ id: string }>(
    database,
    'select id from deliveries where waba_id = ? and replay_of is null order by id',
    [wabaId],
  );
  return rows.map((row) => publicDeliveryId(row.id));
}

/** Replay rows in the queue by state. */
export async function queuedStates(database: Database): Promise<Record<string, number>> {
  const rows = await query<{ state: string; n: number }>(
    database,
    'select state, count(*)::integer as n from delivery_queue where replay group by state',
  );
  return Object.fromEntries(rows.map(({ state, n }) => [state, n]));
}

/** Empties what a test left behind. */
export async function clearDeliveries(database: Database): Promise<void> {
  await database.raw(
    'delete from workflow_tasks; delete from replays; delete from delivery_queue; delete from deliveries; delete from events; delete from ordering_keys; delete from webhook_endpoints',
  );
}
