import { beforeEach, describe, expect, test } from 'vitest';
import { makeWindowLook } from '../../../../src/features/messages/conversations/closing-windows.ts';
import type { Database } from '../../../../src/platform/postgres/database.ts';
import { execute, query, queryOnly } from '../../../../src/platform/postgres/sql.ts';
import { bodyOf, textMessage } from '../../../support/load/upstream-bodies.ts';
import { accountOf } from '../../../support/receiving-tenant.ts';
import { takeIn } from '../../../support/take-in.ts';
import { addEndpoint, type FreshTenant, freshTenant } from '../../../support/test-accounts.ts';
import { testDatabase } from '../../../support/test-database.ts';

const URL = 'https://receiver.example/hook';
const WINDOW_MINUTES = 24 * 60;

let database: Database;
let tenant: FreshTenant;
let asking: { id: string };
let written = 0;

beforeEach(async () => {
  ({ database } = await testDatabase());
  tenant = await freshTenant(database);
  asking = await addEndpoint(database, tenant.wabaId, URL, ['message', 'window.closing']);
});

/** A message of the one customer that came so many minutes before the end of its window. */
async function writtenBefore(minutes: number): Promise<void> {
  written += 1;
  const id = `wamid.WINDOW${written}`;
  await takeIn(database, bodyOf(accountOf(tenant), [textMessage(id, 'x')]));
  await execute(
    database,
    `update messages set sent_at = now() - :ago * interval '1 minute', created_at = now() - :ago * interval '1 minute'
      where upstream_id = :id`,
    { id, ago: WINDOW_MINUTES - minutes },
  );
}

type Closing = {
  eventId: string;
  body: { eventId: string; data: Record<string, unknown> };
  conversationId: string;
};

async function closings(): Promise<Closing[]> {
  return await query<Closing>(
    database,
    `select event_id as "eventId", convert_from(body, 'UTF8')::json as body, conversation_id as "conversationId"
       from events where event_type = 'window.closing' and waba_id = :wabaId order by id`,
    { wabaId: tenant.wabaId },
  );
}

const endpointsOf = async (eventType: string) =>
  (
    await query<{ id: string }>(
      database,
      `select distinct d.endpoint_id as id from deliveries d join events e on e.id = d.event_uuid
        where e.event_type = :eventType order by 1`,
      { eventType },
    )
  ).map(({ id }) => id);

/** Time goes on for everything that was stored, and not for the clock. */
async function minutesLater(minutes: number): Promise<void> {
  const text = `update messages set sent_at = sent_at - :minutes * interval '1 minute', created_at = created_at - :minutes * interval '1 minute'`;
  await execute(database, text, { minutes });
}

describe('window.closing', () => {
  test('goes to the endpoints that ask for it, as the documentation says, once', async () => {
    await addEndpoint(database, tenant.wabaId, URL);
    const look = makeWindowLook(database);
    await writtenBefore(62);
    await look();
    expect(await closings()).toEqual([]);
    await minutesLater(3);
    await look();
    const [closing, ...others] = await closings();
    expect(others).toEqual([]);
    const { at } = await queryOnly<{ at: Date }>(database, 'select sent_at as at from messages');
    const expiresAt = new Date(at.getTime() + WINDOW_MINUTES * 60_000);
    expect(closing?.body).toEqual({
      eventType: 'window.closing',
      userId: Number(tenant.tenantId),
      wabaId: tenant.wabaId,
      phoneNumberId: tenant.number,
      eventId: `window_${closing?.conversationId}_${Math.round(expiresAt.getTime() / 1_000)}_60`,
      occurredAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      data: {
        conversationId: closing?.conversationId,
        customer: { waId: '12025550143', userId: null },
        groupId: null,
        lastInboundAt: expect.stringContaining(at.toISOString().slice(0, 19)),
        lastCallAt: null,
        expiresAt: expect.stringContaining(expiresAt.toISOString().slice(0, 19)),
      },
    });
    expect(await endpointsOf('window.closing')).toEqual([asking.id]);
    await look();
    expect(await closings()).toHaveLength(1);
  });

  test('comes once for each window over restarts and two processes that both lead, and late after an outage', async () => {
    await writtenBefore(12);
    const looks = Array.from({ length: 4 }, () => makeWindowLook(database));
    await Promise.all(looks.map((look) => look()));
    expect(await closings()).toHaveLength(1);
    await makeWindowLook(database)();
    expect(await closings()).toHaveLength(1);
  });

  test('is postponed while the customer writes again, and comes once for messages that follow each other', async () => {
    const look = makeWindowLook(database);
    await writtenBefore(59);
    await writtenBefore(90);
    await look();
    expect(await closings()).toEqual([]);
    await writtenBefore(90.2);
    await minutesLater(31);
    await look();
    await look();
    const [closing, ...others] = await closings();
    expect(others).toEqual([]);
    const { at } = await queryOnly<{ at: Date }>(database, 'select max(sent_at) as at from messages');
    const expiresAt = Date.parse(String(closing?.body.data.expiresAt));
    expect(Math.abs(expiresAt - at.getTime() - WINDOW_MINUTES * 60_000)).toBeLessThan(1_000);
  });

  test('does not come for a window that has closed, nor for a conversation whose messages were erased', async () => {
    await writtenBefore(-1);
    await makeWindowLook(database)();
    await writtenBefore(30);
    await execute(database, 'delete from messages where waba_id = :wabaId', { wabaId: tenant.wabaId });
    await makeWindowLook(database)();
    expect(await closings()).toEqual([]);
  });

  test('comes as many minutes before the end as each endpoint says', async () => {
    await execute(
      database,
      'update webhook_endpoints set window_closing_minutes = 120 where id = :id',
      asking,
    );
    const late = await addEndpoint(database, tenant.wabaId, URL, ['window.closing']);
    const look = makeWindowLook(database);
    await writtenBefore(100);
    await look();
    expect(await endpointsOf('window.closing')).toEqual([asking.id]);
    await minutesLater(45);
    await look();
    expect(await endpointsOf('window.closing')).toEqual([asking.id, late.id]);
    expect((await closings()).map(({ eventId }) => eventId.split('_').at(-1))).toEqual(['120', '60']);
  });

  test('stands behind the other events of the conversation where the endpoint orders by it', async () => {
    await execute(
      database,
      `update webhook_endpoints set order_scope = 'conversation' where id = :id`,
      asking,
    );
    await writtenBefore(30);
    await makeWindowLook(database)();
    const queued = await query<{ type: string; lane: string; state: string }>(
      database,
      `select e.event_type as type, q.lane, q.state from delivery_queue q join events e on e.id = q.event_uuid
        where q.endpoint_id = :id order by q.position`,
      asking,
    );
    const [{ conversationId } = { conversationId: '' }] = await closings();
    const lane = `conversation/${conversationId}`;
    expect(queued).toEqual([
      { type: 'message', lane, state: 'due' },
      { type: 'window.closing', lane, state: 'queued' },
    ]);
  });

  test('is looked for in pages, so that no turn is longer for many conversations', async () => {
    const rows = 1_200;
    await writtenBefore(30);
    await execute(
      database,
      `insert into messages (waba_id, phone_number_id, conversation_id, direction, upstream_id, type, content, sent_at, created_at)
       select waba_id, phone_number_id, conversation_id, 'inbound', upstream_id || n, type, content, sent_at - n * interval '1 ms',
              created_at - n * interval '1 ms' from messages, generate_series(1, :rows) as n`,
      { rows },
    );
    const look = makeWindowLook(database);
    const turns = [await look(), await look(), await look(), await look()];
    expect(turns).toEqual([true, true, false, false]);
    expect(await closings()).toHaveLength(1);
  });
});
