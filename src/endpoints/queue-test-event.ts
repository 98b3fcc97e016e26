import { insertDeliveries } from '../deliveries/delivery-log.ts';
import { TEST_PHONE_NUMBER_ID, testEventData } from '../deliveries/envelope.ts';
import { insertEvents, newDelivery } from '../deliveries/publish.ts';
import type { DeliveryLabel } from '../deliveries/queue/delivery-label.ts';
import { enqueueForWorkflow } from '../deliveries/queue/enqueue.ts';
import type { Database, Transaction } from '../platform/postgres/database.ts';
import { query } from '../platform/postgres/sql.ts';

type TestEventTarget = {
  endpoint: { id: string; url: string };
  tenant: { id: string; businessName: string };
};

export type StoredTestEvent = DeliveryLabel & { eventUuid: string };

/** A reference id of a payment may look like a test's eventId and hold its lane: then the next number is drawn. */
const MAX_NUMBERS = 20;

class LaneTakenError extends Error {}

/**
 * Stores a `test` event with its one delivery, whatever the endpoint's filters and mode. The delivery belongs to
 * its workflow from the start: no loop claims it, and one that is not started is found overdue.
 */
export async function insertTestEvent(
  database: Database,
  wabaId: string,
  target: TestEventTarget,
): Promise<StoredTestEvent> {
  for (let numbers = 1; numbers <= MAX_NUMBERS; numbers += 1) {
    const eventId = await nextTestEventId(database);
    try {
      return await database.transaction((trx) => storeInLane(trx, wabaId, target, eventId));
    } catch (error) {
      if (!(error instanceof LaneTakenError)) throw error;
    }
  }
  throw new Error(`${MAX_NUMBERS} test events in a row found their lane taken`);
}

async function nextTestEventId(database: Database): Promise<string> {
  const [row] = await query<{ number: string }>(database, `select nextval('test_event_number') as number`);
  if (row === undefined) throw new Error('the sequence gave no test event number');
  return `test_${row.number}`;
}

/** Throws LaneTakenError when the endpoint's lane of this name has a head already. */
async function storeInLane(
  trx: Transaction,
  wabaId: string,
  { endpoint, tenant }: TestEventTarget,
  eventId: string,
): Promise<StoredTestEvent> {
  const event = {
    wabaId,
    tenantId: tenant.id,
    phoneNumberId: TEST_PHONE_NUMBER_ID,
    type: 'test' as const,
    eventId,
    laneKey: eventId,
    conversationId: null,
    messageId: null,
    dataJson: testEventData(tenant.businessName),
  };
  const [published] = await insertEvents(trx, [event], new Date());
  if (published === undefined) throw new Error('the test event was not stored');
  const delivery = newDelivery(published, endpoint.id, published.lane, true);
  await insertDeliveries(trx, [delivery]);
  if (!(await enqueueForWorkflow(trx, delivery))) throw new LaneTakenError();
  const { deliveryId, deliveryDay, eventUuid } = delivery;
  const label = { endpointId: endpoint.id, endpointUrl: endpoint.url, tenantId: tenant.id };
  return { deliveryId, deliveryDay, eventUuid, eventId, eventType: 'test', wabaId, ...label };
}

export type TestEventProgress = {
  state: 'pending' | 'delivered' | 'failed' | 'dropped';
  statusCode: number | null;
  error: string | null;
  durationMs: number | null;
};

/** How far the delivery of a test event is; null when it is gone. */
export async function findTestEventProgress(
  database: Database,
  wabaId: string,
  delivery: { deliveryDay: string; deliveryId: string },
): Promise<TestEventProgress | null> {
  const [row] = await query<TestEventProgress>(
    database,
    `select d.state, d.last_status_code as "statusCode", d.last_error as error, a.duration_ms as "durationMs"
       from deliveries d
       left join lateral (select duration_ms from attempts where delivery_id = d.id order by attempt desc limit 1) a
         on true
      where d.day = :deliveryDay and d.id = :deliveryId and d.waba_id = :wabaId`,
    { wabaId, ...delivery },
  );
  return row ?? null;
}
