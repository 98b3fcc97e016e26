import { Command, InvalidArgumentError } from 'commander';
import { deliveryIdOfWorkflow } from '../../../engine/queue/claim.ts';
import { adminAction, alignedFields, alignedTable } from '../../../platform/cli/admin-action.ts';
import type { Config } from '../../../platform/config/config.ts';
import { openEventIdHash } from '../../../platform/crypto/installation-secret.ts';
import { shownUrl } from '../../../platform/http/outbound-url.ts';
import { MAX_ID_CHARS } from '../../../platform/json/storable-text.ts';
import { maskMessageIds } from '../../../platform/logger.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { query } from '../../../platform/postgres/sql.ts';
import {
  dayOfUuidV7,
  deliveryUuidOf,
  eventUuidOf,
  publicBatchId,
  publicDeliveryId,
  publicEventId,
} from '../../../platform/public-ids.ts';
import { invalidValue, shown } from '../../../platform/request-input.ts';
import { workflowListUrl, workflowUrl } from '../../../platform/temporal/client-connection.ts';
import { eventQuery } from '../../../platform/temporal/workflow-options.ts';
import {
  type EventAttempt,
  type EventDelivery,
  findDeliveriesOfEvents,
  findOwners,
  listDeliveryAttempts,
} from '../deliveries.ts';
import { eventIdsOf } from '../delivery-search.ts';
import type { ListedEvent } from '../events.ts';
import { type FoundObject, findObjects } from '../find-objects.ts';

const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 1_000;

const ID_KINDS =
  'an id that the API, a webhook, the portal or a command shows, or the id of a workflow: an eventId, a webhook-id ' +
  '(evt_…), the id of a delivery (dlv_…), a serviceMessageId, the upstream id of a message, the number of an order ' +
  '(ORD-…), a request id (req_…), the id of an endpoint, …';

/** One event with that eventId, with everything that is known of its way to the endpoints. */
type EventReport = Awaited<ReturnType<typeof findEvents>>['events'][number];

export function findCommand(): Command {
  const command = new Command('find')
    .description(
      'find the object of an id, of all tenants: events with their deliveries, attempts and workflows, and others',
    )
    .argument('<id>', ID_KINDS)
    .option('--limit <n>', 'how many events at most, the newest first', parseLimit, DEFAULT_LIMIT);
  const example = 'find test_1 --json';
  return adminAction<{ limit: number }>(command, example, async ({ tools, args, options }) => {
    const [id = ''] = args;
    const { events, hasMore } = await findEvents(tools, id, options.limit);
    const objects = (await findObjects(tools.database, null, id)).map(({ page, ...object }) => ({
      ...object,
      url: page === null ? null : `${tools.config.api.publicUrl}${page}`,
    }));
    const found = events.length + objects.length > 0;
    const notes = hasMore ? [`only the newest ${options.limit} are shown; raise --limit for more.`] : [];
    return {
      json: { id, events, objects, hasMore },
      text: found
        ? [...(objects.length > 0 ? [objectsText(objects)] : []), ...events.map(foundEventText)].join('\n\n')
        : `Nothing has the id ${shown(id)}. It takes ${ID_KINDS}.`,
      notes,
      found,
    };
  });
}

export function eventsCommand(): Command {
  return new Command('events')
    .description('look up the workflows of an event')
    .addCommand(searchAttributeCommand());
}

function searchAttributeCommand(): Command {
  const command = new Command('search-attribute')
    .description(
      'print the hash of an eventId by which Temporal finds its workflows: ids that hold a phone number are not stored there',
    )
    .argument('<eventId>', 'as in the webhook');
  return adminAction(
    command,
    'events search-attribute wamid.HBgLMTIwMjU1NTAxNDMVAgA=',
    async ({ tools, args }) => {
      const [eventId = ''] = args;
      checkEventId(eventId);
      const value = await openEventIdHash(tools)(eventId);
      if (value === null) {
        const text = 'The secret of the installation cannot be opened: admin secrets status.';
        return { json: { eventId, value }, text, found: false };
      }
      const query = eventQuery(value);
      const url = workflowListUrl(tools.config.temporal, query);
      const inLogs = maskMessageIds(eventId);
      return {
        json: { eventId, value, query, url, inLogs },
        text: alignedFields([
          ['HeliographEventId', value],
          ['query', query],
          ['Temporal UI', url],
          ['in logs', inLogs],
        ]),
      };
    },
  );
}

function checkEventId(eventId: string): void {
  if (eventId === '' || eventId.length > MAX_ID_CHARS || eventId.includes('\0')) {
    throw invalidValue(`An eventId has 1 to ${MAX_ID_CHARS} characters.`);
  }
}

async function findEvents(
  { database, config }: { database: Database; config: Config },
  id: string,
  limit: number,
) {
  checkEventId(id);
  const found = await findEventsForOperator(database, id, limit + 1);
  const events = found.slice(0, limit);
  const uuids = events.map(({ eventUuid }) => eventUuid);
  const deliveries = await findDeliveriesOfEvents(database, uuids);
  const ids = deliveries.map((delivery) => delivery.id);
  const attempts = await listDeliveryAttempts(database, null, ids, null);
  return {
    hasMore: found.length > limit,
    events: events.map((event) => ({
      ...event,
      userId: Number(event.userId),
      webhookId: publicEventId(event.eventUuid),
      deliveries: deliveries
        .filter((delivery) => delivery.eventUuid === event.eventUuid)
        .map((delivery) => deliveryReport(config, delivery, attempts)),
    })),
  };
}

function deliveryReport(
  { temporal }: Config,
  { eventUuid: _, id, sentWith, ...delivery }: EventDelivery,
  attempts: readonly EventAttempt[],
) {
  return {
    ...delivery,
    url: delivery.url === null ? null : shownUrl(delivery.url),
    deliveryId: publicDeliveryId(id),
    batchId: sentWith === null ? null : publicBatchId(sentWith),
    workflowUrl: delivery.workflowId === null ? null : workflowUrl(temporal, delivery.workflowId),
    attemptLog: attempts
      .filter(({ deliveryId }) => deliveryId === id)
      .map(({ attempt, startedAt, durationMs, statusCode, errorClass, errorMessage }) => ({
        attempt,
        startedAt,
        durationMs,
        statusCode,
        errorClass,
        errorMessage,
      })),
  };
}

function parseLimit(text: string): number {
  const limit = Number(text);
  if (/^\d{1,4}$/.test(text) && limit >= 1 && limit <= MAX_LIMIT) return limit;
  throw new InvalidArgumentError(`Write a whole number from 1 to ${MAX_LIMIT}.`);
}

function objectsText(objects: readonly (Omit<FoundObject, 'page'> & { url: string | null })[]): string {
  return alignedTable(
    ['OBJECT', 'ID', 'WABA', 'USERID', 'ABOUT', 'CREATED', 'PORTAL'],
    objects.map((one) => [one.kind, one.id, one.wabaId, one.tenantId, one.about, one.createdAt, one.url]),
    '',
  );
}

type DeliveryReport = EventReport['deliveries'][number];

function foundEventText(event: EventReport): string {
  const head = alignedFields([
    ['event', `${event.eventType} ${event.webhookId}`],
    ['WABA', `${event.wabaId} (userId ${event.userId}), phone number id ${event.phoneNumberId}`],
    ['created', event.createdAt],
    ['occurredAt', event.occurredAt ?? 'not released yet'],
  ]);
  if (event.deliveries.length === 0) return `${head}\n\n  no endpoint was subscribed to it`;
  return [head, ...event.deliveries.map((delivery) => indented(deliveryText(delivery)))].join('\n\n');
}

function deliveryText(delivery: DeliveryReport): string {
  const queued = delivery.queueState === null ? '' : `, ${delivery.queueState} in the queue`;
  const fields = alignedFields([
    ['delivery', delivery.deliveryId],
    ['endpoint', `${delivery.endpointId} ${delivery.url ?? '(gone)'} (${delivery.endpointMode ?? 'gone'})`],
    ['state', `${delivery.state}${queued}`],
    ['last status', delivery.lastStatusCode],
    ['last error', delivery.lastError],
    ['next attempt', delivery.nextAttemptAt],
    ['aside since', delivery.steppedAsideAt],
    ['batch', delivery.batchId],
    ['workflow', delivery.workflowUrl],
  ]);
  const attempts = alignedTable(
    ['ATTEMPT', 'STARTED', 'MS', 'STATUS', 'ERROR'],
    delivery.attemptLog.map((attempt) => [
      attempt.attempt,
      attempt.startedAt,
      attempt.durationMs.toFixed(1),
      attempt.statusCode,
      attempt.errorClass === null ? null : `${attempt.errorClass}: ${attempt.errorMessage ?? ''}`,
    ]),
    'no attempts yet',
  );
  return `${fields}\n${attempts}`;
}

function indented(text: string): string {
  return text.replace(/^/gm, '  ');
}

type FoundEvent = Pick<ListedEvent, 'createdAt' | 'occurredAt'> & {
  eventUuid: string;
  eventType: string;
  userId: string;
  wabaId: string;
  phoneNumberId: string;
  sequence: string;
};

/**
 * The newest events with an id, of all tenants: for operators. An eventId is not unique. Names every WABA, so that the
 * index on (waba_id, event_id) serves instead of a scan of every day.
 */
export async function findEventsForOperator(
  database: Database,
  id: string,
  limit: number,
): Promise<FoundEvent[]> {
  const eventUuid = eventUuidOf(id) ?? (await eventOfDelivery(database, id));
  const wanted =
    eventUuid === null
      ? 'waba_id = any (array(select waba_id from wabas)) and event_id = any (:eventIds)'
      : 'day = cast(:day as date) and id = cast(:eventUuid as uuid)';
  return await query<FoundEvent>(
    database,
    `select id as "eventUuid", event_type as "eventType", tenant_id as "userId", waba_id as "wabaId",
            phone_number_id as "phoneNumberId", sequence, created_at as "createdAt", occurred_at as "occurredAt"
       from events where ${wanted} order by created_at desc, sequence desc limit :limit`,
    eventUuid === null
      ? { limit, eventIds: await eventIdsOf(database, null, id) }
      : { limit, eventUuid, day: dayOfUuidV7(eventUuid) },
  );
}

/** The event of a public delivery id; null when the text is none, or the delivery is not kept. */
async function eventOfDelivery(database: Database, id: string): Promise<string | null> {
  const deliveryUuid = deliveryUuidOf(id) ?? deliveryIdOfWorkflow(id);
  return deliveryUuid === null ? null : ((await findOwners(database, deliveryUuid))?.eventUuid ?? null);
}
