import { TEST_PHONE_NUMBER_ID, testEventData } from '../../engine/deliveries/envelope.ts';
import { newDelivery, publishTo } from '../../engine/deliveries/publish.ts';
import { formatTakes } from '../../engine/endpoint/event-format.ts';
import { listEndpoints } from '../../engine/endpoint/store.ts';
import type { DeliveryLabel } from '../../engine/queue/claim.ts';
import { insertDeliveries, recordWorkflow } from '../../engine/queue/delivery-log.ts';
import { enqueueTest } from '../../engine/queue/enqueue.ts';
import { type Audited, recordChange } from '../../platform/audit/audit.ts';
import type { CoreEventType } from '../../platform/event-type.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { openRateLimitStore } from '../../platform/postgres/rate-limit-store.ts';
import { queryOnly } from '../../platform/postgres/sql.ts';
import { publicDeliveryId, publicEventId } from '../../platform/public-ids.ts';
import { checkRowId, invalidValue, RateLimitError, RequestError } from '../../platform/request-input.ts';
import { knownWaba } from '../accounts/accounts.ts';
import { type DeliveryState, describeDeliveries } from '../delivery-log/deliveries.ts';
import { endpointName } from './endpoints.ts';

export type TestEventTools = {
  database: Database;
  /** Starts the workflow of a delivery and returns its id; rejects when Temporal does not take it. */
  startDelivery: (label: DeliveryLabel) => Promise<string>;
  waitMs: number;
};

/** An event of another type that a test sends in place of the `test` event. */
export type SampleEvent = {
  type: CoreEventType;
  /** JSON text of `data`. */
  dataOf: (eventId: string) => string;
  /** That of an earlier test; null: a new one. */
  eventId: string | null;
};

export type TestEventResult = TestEventProgress & {
  eventId: string;
  /** The `webhook-id` and the `X-Service-Delivery-Id` that the receiver sees. */
  webhookId: string;
  deliveryId: string;
  endpointId: string;
  workflowId: string | null;
  /** Why the workflow could not be started now; the worker starts it when it can. */
  startError: unknown;
};

type TestEventProgress = {
  state: DeliveryState;
  statusCode: number | null;
  error: string | null;
  durationMs: number | null;
};

const POLL_MS = 100;
/** Enough to try out a receiver, too little to flood a foreign server. */
const MAX_PER_MINUTE = 30;

/**
 * Sends the `test` event to one endpoint and waits for the outcome. It is sent whatever the endpoint's filters
 * and mode, once, without retries. A sample in its place is sent as its type is: when the endpoint is open, with retries.
 * When Temporal is away it stays queued: state `pending` with a startError. Throws RequestError: `invalid_value`,
 * `unknown_waba`, `unknown_endpoint`, `rate_limit_exceeded`, `test_event_pending`.
 */
export async function sendTestEvent(
  tools: TestEventTools & Audited,
  wabaId: string,
  endpointId: string,
  sample: SampleEvent | null = null,
): Promise<TestEventResult> {
  const { database } = tools;
  const { tenantId, businessName } = await knownWaba(database, wabaId);
  checkRowId('The id of the endpoint', endpointId);
  const endpoint = (await listEndpoints(database, wabaId)).find(({ id }) => id === endpointId);
  if (endpoint === undefined) {
    throw new RequestError('unknown_endpoint', `There is no webhook endpoint ${endpointId}.`);
  }
  if (sample !== null && !formatTakes(endpoint.format, sample.type)) {
    const message = `An endpoint with the format ${endpoint.format} receives no ${sample.type} events.`;
    throw invalidValue(message, 'sample');
  }
  await takeTestEvent(database, endpointId);
  const tenant = { id: tenantId, businessName };
  const stored = await insertTestEvent(database, wabaId, { endpoint, tenant, sample });
  const target = endpointName(endpointId);
  const detail = { eventId: stored.eventId };
  await recordChange(database, tools.actor, { wabaId, action: 'endpoint.test_event', target, detail });
  const start = await startWorkflow(tools, stored);
  const progress = await settled(tools, stored, start.workflowId === null ? 0 : tools.waitMs);
  return {
    eventId: stored.eventId,
    webhookId: publicEventId(stored.eventUuid),
    deliveryId: publicDeliveryId(stored.deliveryId),
    endpointId,
    ...progress,
    ...start,
  };
}

async function takeTestEvent(database: Database, endpointId: string): Promise<void> {
  const taken = openRateLimitStore(database, { kind: 'test_event', windowSeconds: 60 });
  const { consumed, remainingMs } = await taken.add(endpointId, 1);
  if (consumed <= MAX_PER_MINUTE) return;
  const message = `An endpoint takes ${MAX_PER_MINUTE} test events per minute: wait a minute.`;
  throw new RateLimitError(message, remainingMs);
}

async function startWorkflow(
  tools: TestEventTools,
  stored: StoredTestEvent,
): Promise<{ workflowId: string | null; startError: unknown }> {
  try {
    const workflowId = await tools.startDelivery(stored);
    await recordWorkflow(tools.database, [{ ...stored, workflowId }]);
    return { workflowId, startError: null };
  } catch (error) {
    return { workflowId: null, startError: error };
  }
}

/** The outcome once there is one, or how far it is after `waitMs`. */
async function settled(
  { database }: TestEventTools,
  stored: StoredTestEvent,
  waitMs: number,
): Promise<TestEventProgress> {
  const deadlineMs = performance.now() + waitMs;
  for (;;) {
    const [logged] = await describeDeliveries(database, [{ day: stored.deliveryDay, id: stored.deliveryId }]);
    if (logged === undefined) throw new Error('the delivery of the test event is gone');
    const { state, lastStatusCode: statusCode, lastError: error, lastDurationMs: durationMs } = logged;
    if (state !== 'pending' || performance.now() >= deadlineMs)
      return { state, statusCode, error, durationMs };
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

type TestEventTarget = {
  endpoint: { id: string; url: string };
  tenant: { id: string; businessName: string };
  sample?: SampleEvent | null;
};

type StoredTestEvent = DeliveryLabel & { eventUuid: string };

/** A reference id of a payment may look like a test's eventId and hold its lane: then the next number is drawn. */
const MAX_NUMBERS = 20;

class LaneTakenError extends Error {}

/**
 * Stores a `test` event with its one delivery, whatever the endpoint's filters and mode. Its workflow makes the attempt;
 * where that does not come within seconds, a worker does.
 */
export async function insertTestEvent(
  database: Database,
  wabaId: string,
  target: TestEventTarget,
): Promise<StoredTestEvent> {
  const given = target.sample?.eventId ?? null;
  for (let numbers = 1; numbers <= MAX_NUMBERS; numbers += 1) {
    const eventId = given ?? (await nextTestEventId(database));
    try {
      return await database.transaction((trx) => storeInLane(trx, wabaId, target, eventId));
    } catch (error) {
      if (!(error instanceof LaneTakenError)) throw error;
      if (given !== null) throw new RequestError('test_event_pending', `${given} is still being delivered.`);
    }
  }
  throw new Error(`${MAX_NUMBERS} test events in a row found their lane taken`);
}

async function nextTestEventId(database: Database): Promise<string> {
  const row = await queryOnly<{ number: string }>(database, `select nextval('test_event_number') as number`);
  return `test_${row.number}`;
}

/** Throws LaneTakenError when the endpoint's lane of this name has a head already. */
async function storeInLane(
  trx: Transaction,
  wabaId: string,
  { endpoint, tenant, sample = null }: TestEventTarget,
  eventId: string,
): Promise<StoredTestEvent> {
  const event = {
    wabaId,
    tenantId: tenant.id,
    phoneNumberId: TEST_PHONE_NUMBER_ID,
    type: sample?.type ?? ('test' as const),
    eventId,
    laneKey: eventId,
    conversationId: null,
    messageId: null,
    dataJson: sample?.dataOf(eventId) ?? testEventData(tenant.businessName),
  };
  // Without subscribers: it goes to this endpoint only.
  const { events } = await publishTo(trx, [], [event], { occurredAt: new Date(), claimer: null });
  const [published] = events;
  if (published === undefined) throw new Error('the test event was not stored');
  const delivery = newDelivery(published, endpoint.id, published.lane, true);
  await insertDeliveries(trx, [delivery]);
  if (!(await enqueueTest(trx, delivery))) throw new LaneTakenError();
  const { deliveryId, deliveryDay, eventUuid } = delivery;
  const label = { endpointId: endpoint.id, endpointUrl: endpoint.url, tenantId: tenant.id };
  return { deliveryId, deliveryDay, eventUuid, eventId, eventType: event.type, wabaId, ...label };
}
