import type { EventType } from '../domain/event-type.ts';
import type { Database } from './database.ts';
import { query } from './sql.ts';
import type { Binding } from './statement.ts';

/** States in which a delivery can be sent again: open ones are sent anyway. */
export const REPLAYABLE_STATES = ['delivered', 'failed', 'dropped'] as const;
export type ReplayableState = (typeof REPLAYABLE_STATES)[number];

/** Which deliveries a replay sends again; null means no restriction. Times are ISO 8601, `to` is exclusive. */
export type ReplaySelection = {
  /** UUIDs; deliveries of other replays only count when they are named here. */
  deliveryIds: string[] | null;
  endpointId: string | null;
  from: string | null;
  to: string;
  /** Without them, every type but `test`. */
  eventTypes: EventType[] | null;
  states: ReplayableState[] | null;
};

/** The lowest UUID of a millisecond: version 7 UUIDs made from then on are not below it. */
export function lowestUuidAt(atMs: number): string {
  const hex = Math.max(0, atMs).toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-0000-0000-000000000000`;
}

/** The millisecond that a version 7 UUID was made in, as Unix time. */
export function msOfUuid(uuid: string): number {
  return Number.parseInt(uuid.slice(0, 8) + uuid.slice(9, 13), 16);
}

/** The part of the selection's range that ends before `toId`, as conditions on `deliveries d` and `events ev`. */
export function selectionConditions(
  wabaId: string,
  selection: ReplaySelection,
): { where: string; bindings: Record<string, Binding> } {
  const conditions = ['d.waba_id = :wabaId'];
  const bindings: Record<string, Binding> = { wabaId };
  const add = (condition: string, name: string, value: Binding | null) => {
    if (value === null) return;
    conditions.push(condition);
    bindings[name] = value;
  };
  add('d.id = any (cast(:deliveryIds as uuid[]))', 'deliveryIds', selection.deliveryIds);
  add('d.endpoint_id = :endpointId', 'endpointId', selection.endpointId);
  add('d.state = any (cast(:states as text[]))', 'states', selection.states);
  add('ev.event_type = any (cast(:eventTypes as text[]))', 'eventTypes', selection.eventTypes);
  if (selection.deliveryIds === null) {
    conditions.push('d.replay_of is null');
    if (selection.eventTypes === null) conditions.push(`ev.event_type is distinct from 'test'`);
  }
  return { where: conditions.join(' and '), bindings };
}

/** Why a selected delivery is passed over; null when it can be sent again. Over `d`, `ev` and endpoints `e`. */
export const OBSTACLE = `case when e.id is null then 'endpoint_gone' when ev.body is null then 'no_body'
  when d.state = 'pending' then 'open' end`;

export const SELECTED_FROM = `deliveries d
  left join events ev on ev.day = d.event_day and ev.id = d.event_uuid
  left join webhook_endpoints e on e.id = d.endpoint_id and e.waba_id = d.waba_id`;

export type SelectedGroup = {
  endpointId: string;
  eventType: string | null;
  obstacle: 'endpoint_gone' | 'no_body' | 'open' | null;
  deliveries: number;
  oldest: Date;
  newest: Date;
};

/** Counts the selection by endpoint, type and obstacle, up to `limit` deliveries in all. */
export async function countSelection(
  database: Database,
  wabaId: string,
  selection: ReplaySelection,
  limit: number,
): Promise<SelectedGroup[]> {
  const { where, bindings } = selectionConditions(wabaId, selection);
  const range = await selectionRange(database, selection);
  if (range === null) return [];
  return await query<SelectedGroup>(
    database,
    `select endpoint_id as "endpointId", event_type as "eventType", obstacle,
            cast(count(*) as integer) as deliveries, min(created_at) as oldest, max(created_at) as newest
       from (select d.endpoint_id, d.created_at, ev.event_type, ${OBSTACLE} as obstacle
               from ${SELECTED_FROM}
              where ${where} and d.id >= :fromId and d.id < :toId
                and d.day >= cast(:fromDay as date) and d.day <= cast(:toDay as date)
              limit :limit) as selected
      group by 1, 2, 3`,
    { ...bindings, ...range, fromDay: dayOfId(range.fromId), toDay: dayOfId(range.toId), limit },
  );
}

/** The ids between which the selection lies, `toId` exclusive; null when there can be nothing in it. */
export async function selectionRange(
  database: Database,
  selection: ReplaySelection,
): Promise<{ fromId: string; toId: string } | null> {
  if (selection.deliveryIds !== null) {
    const times = selection.deliveryIds.map(msOfUuid);
    if (times.length === 0) return null;
    return { fromId: lowestUuidAt(Math.min(...times)), toId: lowestUuidAt(Math.max(...times) + 1) };
  }
  const oldestMs = await oldestDeliveryMs(database);
  if (oldestMs === null) return null;
  const fromMs = selection.from === null ? oldestMs : Math.max(oldestMs, Date.parse(selection.from));
  const toMs = Date.parse(selection.to);
  return fromMs < toMs ? { fromId: lowestUuidAt(fromMs), toId: lowestUuidAt(toMs) } : null;
}

async function oldestDeliveryMs(database: Database): Promise<number | null> {
  const [row] = await query<{ day: string | null }>(database, 'select min(day) as day from deliveries');
  return row === undefined || row.day === null ? null : Date.parse(row.day);
}

/** The UTC day of the partition that holds the id. */
export function dayOfId(uuid: string): string {
  return new Date(msOfUuid(uuid)).toISOString().slice(0, 10);
}
