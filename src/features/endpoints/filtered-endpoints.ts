import { wants } from '../../engine/deliveries/publish.ts';
import { endpointsOfWabas } from '../../engine/endpoint/endpoint-settings.ts';
import { filterOf } from '../../engine/endpoint/event-filter.ts';
import { MESSAGE_BATCH, type SentEventType } from '../../platform/event-type.ts';
import { isMembers } from '../../platform/json/json-members.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { queryColumn } from '../../platform/postgres/sql.ts';

/**
 * The endpoints that have no delivery of an event because their content filter, as it is now, does not take it. Asked
 * when a user looks: to store it would cost a row for what is spared.
 */
export async function endpointsThatFilter(
  database: Database,
  wabaId: string,
  {
    event,
    body,
  }: {
    event: { id: string; eventType: SentEventType; phoneNumberId: string | null };
    body: string | undefined;
  },
): Promise<string[]> {
  if (body === undefined || event.eventType === 'test' || event.eventType === MESSAGE_BATCH) return [];
  const parsed: unknown = JSON.parse(body);
  const data = isMembers(parsed) ? parsed.data : undefined;
  const asked = { wabaId, type: event.eventType, phoneNumberId: event.phoneNumberId };
  const spared = (await endpointsOfWabas(database, [wabaId])).filter(
    (endpoint) => endpoint.filter !== null && wants(endpoint, asked) && !filterOf(endpoint.filter)(data),
  );
  if (spared.length === 0) return [];
  const ids = await queryColumn<string>(
    database,
    `select distinct endpoint_id from deliveries
      where waba_id = :wabaId and event_uuid = :id and endpoint_id = any (cast(:endpointIds as bigint[]))
        and state <> 'dropped'`,
    { wabaId, id: event.id, endpointIds: spared.map(({ id }) => id) },
  );
  const had = new Set(ids);
  return spared.map(({ id }) => id).filter((id) => !had.has(id));
}
