import type { Database } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';

const MAX_EVENTS = 100;
const MAX_DELIVERIES = 200;

/** Every WABA is named for operators, so that the index on (waba_id, event_id) serves. */
function owners(wabaId: string | null): string {
  return wabaId === null ? 'waba_id = any (array(select waba_id from wabas))' : 'waba_id = :wabaId';
}

/** The newest deliveries of the events of a WABA (null: of all) with one of these eventIds or one of these ids. */
export async function deliveriesOfEvents(
  database: Database,
  wabaId: string | null,
  { eventIds, eventKeys }: { eventIds: readonly string[]; eventKeys: readonly { day: string; id: string }[] },
): Promise<string[]> {
  const events =
    eventKeys.length > 0
      ? eventKeys.map(({ id }) => id)
      : (
          await query<{ id: string }>(
            database,
            `select id from events where ${owners(wabaId)} and event_id = any (cast(:eventIds as text[]))
              order by id desc limit ${MAX_EVENTS}`,
            { eventIds, wabaId },
          )
        ).map(({ id }) => id);
  if (events.length === 0) return [];
  const rows = await query<{ id: string }>(
    database,
    `select id from deliveries where event_uuid = any (cast(:events as uuid[])) and ${owners(wabaId)}
      order by id desc limit ${MAX_DELIVERIES}`,
    { events, wabaId },
  );
  return rows.map(({ id }) => id);
}

/** The upstream id of a message of a WABA (null: of any) by our Message_Id; null when there is none. */
export async function upstreamIdOf(
  database: Database,
  wabaId: string | null,
  messageId: string,
): Promise<string | null> {
  const [row] = await query<{ upstreamId: string }>(
    database,
    `select upstream_id as "upstreamId" from messages
      where id = cast(:messageId as bigint) ${wabaId === null ? '' : 'and waba_id = :wabaId'}`,
    { messageId, wabaId },
  );
  return row?.upstreamId ?? null;
}
