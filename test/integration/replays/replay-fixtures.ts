import { publishEvents } from '../../../src/engine/deliveries/publish.ts';
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
  const [waba] = await query<{ tenantId: string; phoneNumberId: string }>(
    database,
    `select tenant_id as "tenantId", min(phone_number_id) as "phoneNumberId"
       from wabas join phone_numbers using (waba_id) where waba_id = :wabaId group by tenant_id`,
    { wabaId },
  );
  if (waba === undefined) throw new Error(`WABA ${wabaId} has no number`);
  const events = Array.from({ length: count }, (_, index) => ({
    wabaId,
    ...waba,
    type,
    conversationId: null,
    messageId: null,
    eventId: `key-${index % keys}`,
    laneKey: `key-${index % keys}`,
    dataJson: `{"n":${index}}`,
  }));
  await database.transaction((trx) => publishEvents(trx, events, new Date()));
}

/** Ends everything that is queued for live deliveries, of one WABA if it is given. */
export async function settleLive(
  database: Database,
  state: 'delivered' | 'failed' | 'dropped',
  wabaId: string | null = null,
): Promise<void> {
  await execute(
    database,
    `with live as (
       delete from delivery_queue q using deliveries d
        where d.id = q.delivery_id and not q.replay and d.waba_id = coalesce(:wabaId, d.waba_id)
       returning q.delivery_id as id)
     update deliveries d set state = :state, finished_at = now() from live where d.id = live.id`,
    { state, wabaId },
  );
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
 * after the one before. Returns what was sent, in that order. The third parameter narrows it down.
 */
export async function deliverReplays(
  database: Database,
  limit = 10_000,
  { wabaId = null, endpointId = null }: { wabaId?: string | null; endpointId?: string | null } = {},
): Promise<Sent[]> {
  const sent: Sent[] = [];
  while (sent.length < limit) {
    const batch = await database.transaction(async (trx) => {
      const heads = await query<Sent & { n: number }>(
        trx,
        `select q.delivery_id as "deliveryId", q.endpoint_id as "endpointId", ev.lane, ev.sequence::integer as sequence,
                q.event_uuid as "eventUuid"
           from delivery_queue q join events ev on ev.day = q.event_day and ev.id = q.event_uuid
          where q.replay and q.state = 'due' and ev.waba_id = coalesce(:wabaId, ev.waba_id)
            and q.endpoint_id = coalesce(cast(:endpointId as bigint), q.endpoint_id)
          order by q.endpoint_id, q.lane limit :limit for update of q skip locked`,
        { wabaId, endpointId, limit: Math.min(200, limit - sent.length) },
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
    'select id from deliveries where waba_id = :wabaId and replay_of is null order by id',
    { wabaId },
  );
  return rows.map((row) => publicDeliveryId(row.id));
}

/** Replay rows in the queue by state, of one WABA if it is given. */
export async function queuedStates(
  database: Database,
  wabaId: string | null = null,
): Promise<Record<string, number>> {
  const rows = await query<{ state: string; n: number }>(
    database,
    `select q.state, count(*)::integer as n
       from delivery_queue q join deliveries d on d.day = q.delivery_day and d.id = q.delivery_id
      where q.replay and d.waba_id = coalesce(:wabaId, d.waba_id) group by q.state`,
    { wabaId },
  );
  return Object.fromEntries(rows.map(({ state, n }) => [state, n]));
}

/** Empties what a test left behind. */
export async function clearDeliveries(database: Database): Promise<void> {
  await database.raw(
    'delete from workflow_tasks; delete from replays; delete from delivery_queue; delete from deliveries; delete from events; delete from ordering_keys; delete from webhook_endpoints',
  );
}
