import type { Database } from '../platform/postgres/database.ts';
import { query } from '../platform/postgres/sql.ts';
import { dayOfUuidV7 } from '../platform/public-ids.ts';
import type { ListedEvent } from './log/event-list.ts';

/** One event of a WABA; null when it has none with this id. */
export async function findEvent(
  database: Database,
  wabaId: string,
  eventUuid: string,
): Promise<ListedEvent | null> {
  const [row] = await query<ListedEvent>(
    database,
    `select id, day, event_type as "eventType", event_id as "eventId", phone_number_id as "phoneNumberId", sequence,
            created_at as "createdAt", occurred_at as "occurredAt", coalesce(octet_length(body), 0) as "sizeBytes"
       from events where day = cast(:day as date) and id = :eventUuid and waba_id = :wabaId`,
    { wabaId, eventUuid, day: dayOfUuidV7(eventUuid) },
  );
  return row ?? null;
}

/** The bodies of these events of a WABA as they are sent, by id; absent: not released yet. */
export async function readEventBodies(
  database: Database,
  wabaId: string,
  events: readonly { id: string; day: string }[],
): Promise<Map<string, string>> {
  const bodies = new Map<string, string>();
  // One day at a time: a constant day is one partition.
  for (const [day, ofDay] of Map.groupBy(events, (event) => event.day)) {
    const rows = await query<{ id: string; body: Buffer }>(
      database,
      `select id, body from events
        where day = cast(:day as date) and id = any (cast(:ids as uuid[])) and waba_id = :wabaId and body is not null`,
      { wabaId, day, ids: ofDay.map(({ id }) => id) },
    );
    for (const { id, body } of rows) bodies.set(id, body.toString('utf8'));
  }
  return bodies;
}
