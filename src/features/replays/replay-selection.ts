import { FORMAT_TAKES_EVENT } from '../../engine/endpoint/event-format.ts';
import { type EventType, typeIsAmong, typeIsWanted } from '../../platform/event-type.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { type Binding, query, queryValue } from '../../platform/postgres/sql.ts';
import { dayOfUuidV7, lowestUuidAt, msOfUuidV7 } from '../../platform/public-ids.ts';

/** Open deliveries are sent anyway. `not_sent`: the endpoint takes such events now and has never had this one. */
export const REPLAYABLE_STATES = ['delivered', 'failed', 'dropped', 'not_sent'] as const;
export type ReplayableState = (typeof REPLAYABLE_STATES)[number];

/** Null means no restriction. Times are ISO 8601, `to` is exclusive. */
export type ReplaySelection = {
  /** UUIDs; deliveries of other replays only count when they are named here. */
  deliveryIds: string[] | null;
  /** UUIDs of events for endpoints that take them now and never had them; beside `deliveryIds`. Missing in old replays. */
  eventIds?: string[] | null;
  endpointId: string | null;
  from: string | null;
  to: string;
  /** Without them, every type but `test`. */
  eventTypes: EventType[] | null;
  states: ReplayableState[] | null;
  /** Only events that are newer than the URL of their endpoint: it was asked for by a key that may not read events. */
  onlySinceUrl?: boolean;
};

/** Ids from `fromId` on, before `toId`. */
export type IdSpan = { fromId: string; toId: string };

const OF_TYPES = typeIsAmong('ev.event_type', 'cast(:eventTypes as text[])');

type Part = { sql: string; bindings: Record<string, Binding> };

/**
 * Columns: `day`, `id`, `delivery_id`, `endpoint_id`, `event_day`, `event_uuid`, `event_type`, `lane`, `sequence`, `conversation_id`,
 * `created_at`, and the obstacle to sending it, if there is one. Null when only events without a delivery are selected.
 */
export function selectedDeliveries(wabaId: string, selection: ReplaySelection, span: IdSpan): Part | null {
  const isWanted = selection.states === null || selection.states.some((state) => state !== 'not_sent');
  if (!isWanted) return null;
  const conditions = ['d.waba_id = :wabaId'];
  const bindings = spanBindings(wabaId, span);
  const add = adderOf(conditions, bindings);
  add('d.id = any (cast(:deliveryIds as uuid[]))', 'deliveryIds', selection.deliveryIds);
  add('d.endpoint_id = :endpointId', 'endpointId', selection.endpointId);
  add('d.state = any (cast(:states as text[]))', 'states', selection.states);
  add(OF_TYPES, 'eventTypes', selection.eventTypes);
  if (selection.deliveryIds === null) {
    conditions.push('d.replay_of is null');
    if (selection.eventTypes === null) conditions.push(`ev.event_type is distinct from 'test'`);
  }
  const sql = `select d.day, d.id, d.id as delivery_id, d.batch_id, d.endpoint_id, d.event_day, d.event_uuid, ev.event_type, ev.lane,
           ev.sequence, ev.conversation_id, d.created_at,
           case when e.id is null then 'endpoint_gone' when ev.body is null then 'no_body'
                when d.state = 'pending' then 'open' ${beforeUrl(selection)} end as obstacle
      from deliveries d
      left join events ev on ev.day = d.event_day and ev.id = d.event_uuid
      left join webhook_endpoints e on e.id = d.endpoint_id and e.waba_id = d.waba_id
     where ${conditions.join(' and ')} and d.day >= cast(:fromDay as date) and d.day <= cast(:lastDay as date)
       and d.id >= :fromId and d.id < :toId`;
  return { sql, bindings };
}

/**
 * As `selectedDeliveries`, for events that endpoints take now and never had; null when the selection is about deliveries only. `test`
 * events are for the endpoint that they were made for.
 */
export function selectedUnsent(wabaId: string, selection: ReplaySelection, span: IdSpan): Part | null {
  const { deliveryIds, eventIds = null, states } = selection;
  const isWanted = deliveryIds === null ? states === null || states.includes('not_sent') : eventIds !== null;
  if (!isWanted) return null;
  const conditions = ['ev.waba_id = :wabaId', `ev.event_type <> 'test'`];
  const bindings = { ...spanBindings(wabaId, span), hadFromDay: dayBefore(dayOfUuidV7(span.fromId)) };
  const add = adderOf(conditions, bindings);
  add('ev.id = any (cast(:eventIds as uuid[]))', 'eventIds', eventIds);
  add('e.id = :endpointId', 'endpointId', selection.endpointId);
  add(OF_TYPES, 'eventTypes', selection.eventTypes);
  const sql = `select ev.day, ev.id, cast(null as uuid) as delivery_id, cast(null as uuid) as batch_id, e.id as endpoint_id, ev.day as event_day,
           ev.id as event_uuid, ev.event_type, ev.lane, ev.sequence, ev.conversation_id, ev.created_at,
           case when ev.body is null then 'no_body' ${beforeUrl(selection)} end as obstacle
      from events ev
      join webhook_endpoints e on e.waba_id = ev.waba_id
       and ${typeIsWanted('ev.event_type', 'e.event_types')}
       and ${FORMAT_TAKES_EVENT}
       and (e.phone_number_ids is null or ev.phone_number_id is null or ev.phone_number_id = any (e.phone_number_ids))
     where ${conditions.join(' and ')} and ev.day >= cast(:fromDay as date) and ev.day <= cast(:lastDay as date)
       and ev.id >= :fromId and ev.id < :toId
       and not exists (select from deliveries had where had.event_uuid = ev.id and had.endpoint_id = e.id
                          and had.day >= cast(:hadFromDay as date))`;
  return { sql, bindings };
}

function beforeUrl({ onlySinceUrl = false }: ReplaySelection): string {
  return onlySinceUrl ? `when ev.created_at < e.url_set_at then 'before_url'` : '';
}

function spanBindings(wabaId: string, { fromId, toId }: IdSpan): Record<string, Binding> {
  const lastDay = dayOfUuidV7(lowestUuidAt(msOfUuidV7(toId) - 1));
  return { wabaId, fromId, toId, fromDay: dayOfUuidV7(fromId), lastDay };
}

/** The clock of a machine that queues deliveries may be behind that of the one that made the event. */
function dayBefore(day: string): string {
  return new Date(Date.parse(day) - 86_400_000).toISOString().slice(0, 10);
}

function adderOf(conditions: string[], bindings: Record<string, Binding>) {
  return (condition: string, name: string, value: Binding | null) => {
    if (value === null) return;
    conditions.push(condition);
    bindings[name] = value;
  };
}

export type SelectedGroup = {
  endpointId: string;
  eventType: string | null;
  obstacle: 'endpoint_gone' | 'no_body' | 'open' | 'before_url' | null;
  isSent: boolean;
  deliveries: number;
  oldest: Date;
  newest: Date;
};

/** By endpoint, type and obstacle, in three statements at most; it stops when there are more than `limit`. */
export async function countSelection(
  database: Database,
  wabaId: string,
  selection: ReplaySelection,
  limit: number,
  beforeStatement: () => Promise<void> = async () => undefined,
): Promise<SelectedGroup[]> {
  await beforeStatement();
  const span = await selectionRange(database, selection);
  if (span === null) return [];
  await beforeStatement();
  const sent = await countPart(database, selectedDeliveries(wabaId, selection, span), limit);
  const left = limit - sent.reduce((total, { deliveries }) => total + deliveries, 0);
  if (left <= 0) return sent;
  await beforeStatement();
  return [...sent, ...(await countPart(database, selectedUnsent(wabaId, selection, span), left))];
}

async function countPart(database: Database, part: Part | null, limit: number): Promise<SelectedGroup[]> {
  if (part === null) return [];
  const { sql, bindings } = part;
  return await query<SelectedGroup>(
    database,
    `select endpoint_id as "endpointId", event_type as "eventType", obstacle, delivery_id is not null as "isSent",
            cast(count(*) as integer) as deliveries, min(created_at) as oldest, max(created_at) as newest
       from (${sql} limit :limit) as selected
      group by 1, 2, 3, 4`,
    { ...bindings, limit },
  );
}

/** `toId` is exclusive; null when there can be nothing in the selection. */
export async function selectionRange(database: Database, selection: ReplaySelection): Promise<IdSpan | null> {
  if (selection.deliveryIds !== null) {
    const times = [...selection.deliveryIds, ...(selection.eventIds ?? [])].map(msOfUuidV7);
    if (times.length === 0) return null;
    return { fromId: lowestUuidAt(Math.min(...times)), toId: lowestUuidAt(Math.max(...times) + 1) };
  }
  const oldestMs = await oldestEventMs(database);
  if (oldestMs === null) return null;
  const fromMs = selection.from === null ? oldestMs : Math.max(oldestMs, Date.parse(selection.from));
  const toMs = Date.parse(selection.to);
  return fromMs < toMs ? { fromId: lowestUuidAt(fromMs), toId: lowestUuidAt(toMs) } : null;
}

/** A delivery can outlive its event, and an event may have none. */
async function oldestEventMs(database: Database): Promise<number | null> {
  const day = await queryValue<string>(
    database,
    'select least((select min(day) from deliveries), (select min(day) from events))',
  );
  return day === null ? null : Date.parse(day);
}

/** `skipped` is beside `deliveries`, not part of it. */
export type ReplayCount = {
  deliveries: number;
  byType: Record<string, number>;
  byEndpoint: Record<string, number>;
  oldest: Date | null;
  newest: Date | null;
  skipped: { pending: number; noBody: number; endpointGone: number };
};

export function countOf(groups: readonly SelectedGroup[]): ReplayCount {
  const wanted = groups.filter(({ obstacle }) => obstacle === null);
  const skippedFor = (name: SelectedGroup['obstacle']) =>
    totalOf(groups.filter(({ obstacle }) => obstacle === name));
  return {
    deliveries: totalOf(wanted),
    byType: tally(wanted, ({ eventType }) => eventType ?? 'unknown'),
    byEndpoint: tally(wanted, ({ endpointId }) => endpointId),
    oldest: wanted.reduce<Date | null>((at, { oldest }) => (at === null || oldest < at ? oldest : at), null),
    newest: wanted.reduce<Date | null>((at, { newest }) => (at === null || newest > at ? newest : at), null),
    skipped: {
      pending: skippedFor('open'),
      noBody: skippedFor('no_body'),
      endpointGone: skippedFor('endpoint_gone'),
    },
  };
}

export function totalOf(groups: readonly SelectedGroup[]): number {
  return groups.reduce((total, { deliveries }) => total + deliveries, 0);
}

function tally(
  groups: readonly SelectedGroup[],
  nameOf: (group: SelectedGroup) => string,
): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const group of groups) counts[nameOf(group)] = (counts[nameOf(group)] ?? 0) + group.deliveries;
  return counts;
}
