import { expect } from 'vitest';
import { publishEvents } from '../../../src/engine/deliveries/publish.ts';
import type { EventType } from '../../../src/platform/event-type.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { NUMBER, type TestApi, WABA } from '../api/api-harness.ts';
import { externalClient } from '../api/external-client.ts';

type Item = {
  id: string;
  eventId: string;
  eventType: string;
  sequence: number;
  deliverySummary: Record<string, number>;
};
export type Page = { data: Item[]; hasMore: boolean; nextCursor: string | null };

export async function publishOne(
  database: Database,
  eventId: string,
  {
    wabaId = WABA,
    type = 'message' as EventType,
    phoneNumberId = NUMBER,
    dataJson = '{}' as string | null,
    at = new Date(),
  } = {},
): Promise<string> {
  const rows = await query<{ id: string }>(
    database,
    'select tenant_id as id from wabas where waba_id = :wabaId',
    { wabaId },
  );
  const tenantId = rows[0]?.id ?? '';
  const event = {
    wabaId,
    tenantId,
    phoneNumberId,
    type,
    eventId,
    laneKey: eventId,
    conversationId: null,
    messageId: null,
    dataJson,
  };
  const [published] = await database.transaction((trx) => publishEvents(trx, [event], at));
  return `evt_${published?.uuid.replaceAll('-', '')}`;
}

export async function client(api: TestApi, wabaId = WABA) {
  const call = await externalClient(api, wabaId);
  const page = async (query = '') => {
    const response = await call('GET', `/api/external/events${query}`);
    expect([response.body.slice(0, 300), response.statusCode]).toEqual([response.body.slice(0, 300), 200]);
    return response.json<Page>();
  };
  return { call, page };
}

/** As if the events had been there for a while: lists in order end two seconds ago. */
export const pastMs = (index: number) => new Date(Date.now() - 60_000 + index);

export function uuidOf(id: string): string {
  return id.slice(4).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
