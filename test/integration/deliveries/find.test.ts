import { describe, expect, test } from 'vitest';
import { findEventsForOperator } from '../../../src/features/delivery-log/commands/find-command.ts';
import { shownUrl } from '../../../src/platform/http/outbound-url.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { startAdmin, WABA } from '../../support/admin-cli.ts';
import { takeIn } from '../../support/take-in.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { fixtureBody } from '../../support/upstream-fixtures.ts';

describe('admin find', () => {
  test('shows every event with an eventId, each with its deliveries and where they stand', async () => {
    const { database, json, admin } = await startAdmin();
    const { id } = await addEndpoint(database, WABA, 'https://shop.example/hook');
    await takeIn(database, fixtureBody('batch_statuses_out_of_order'));
    const [row] = await query<{ event_id: string; count: string }>(
      database,
      'select event_id, count(*) from events group by event_id having count(*) > 1 limit 1',
    );
    const eventId = row?.event_id ?? '';
    const { events, ...rest } = await json('find', eventId);
    expect(rest).toMatchObject({ id: eventId, hasMore: false });
    expect(events).toHaveLength(Number(row?.count));
    for (const event of events) {
      expect(event).toMatchObject({
        eventType: 'status',
        wabaId: WABA,
        userId: expect.any(Number),
        webhookId: `evt_${event.eventUuid.replaceAll('-', '')}`,
        createdAt: expect.stringMatching(/Z$/),
        occurredAt: expect.stringMatching(/Z$/),
        deliveries: [
          { endpointId: id, url: shownUrl('https://shop.example/hook'), state: 'pending', attempts: 0 },
        ],
      });
    }
    expect(events.map((event: { sequence: string }) => Number(event.sequence))).toEqual(
      events.map((_: unknown, index: number) => events.length - index),
    );
    const states = events.flatMap((event: { deliveries: { queueState: string }[] }) =>
      event.deliveries.map((delivery) => delivery.queueState),
    );
    expect(states.sort()).toEqual(['due', ...Array(events.length - 1).fill('queued')]);
    const limited = await admin(['find', eventId, '--limit', '1', '--json']);
    expect(JSON.parse(limited.stdout)).toMatchObject({ hasMore: true, events: [{}] });
    expect(limited.stderr).toMatch(/^note: only the newest 1/);
    const text = (await admin(['find', eventId])).stdout;
    expect(text).toMatch(/ {2}endpoint {6}\d+ https:\/\/shop\.example\/\*\*\*[0-9a-f]{6} \(open\)\n/);
    expect(text).toContain('no attempts yet');
  });

  test('takes every id that tenants see: webhook-id, delivery, serviceMessageId and the upstream id of a message', async () => {
    const { database, json } = await startAdmin();
    await addEndpoint(database, WABA, 'https://shop.example/hook');
    await takeIn(database, fixtureBody('in_text'));
    const [message] = await query<{ id: string; upstreamId: string }>(
      database,
      'select id, upstream_id as "upstreamId" from messages',
    );
    const upstreamId = message?.upstreamId ?? '';
    const found = await json('find', upstreamId);
    expect(found.events).toHaveLength(1);
    const [{ webhookId, deliveries }] = found.events;
    for (const id of [webhookId, deliveries[0].deliveryId, String(message?.id)])
      expect((await json('find', id)).events, id).toEqual(found.events);
  });

  test('takes the ids of everything else, with the address of its page', async () => {
    const { database, admin, json } = await startAdmin();
    const { id } = await addEndpoint(database, WABA, 'https://shop.example/hook');
    const { objects } = await json('find', id);
    const url = expect.stringMatching(new RegExp(`^https?://.*/portal/w/${WABA}/endpoints/${id}$`));
    expect(objects).toContainEqual(expect.objectContaining({ kind: 'endpoint', id, wabaId: WABA, url }));
    expect((await json('find', `endpoint/${id}`)).objects).toHaveLength(1);
    const { stdout, exitCode } = await admin(['find', id]);
    expect(stdout).toMatch(new RegExp(`\\nendpoint +${id} +${WABA} .*/portal/w/${WABA}/endpoints/${id}`));
    expect(exitCode).toBe(0);
  });

  test('an unknown eventId ends with 1 and an empty list', async () => {
    const { admin } = await startAdmin();
    const run = await admin(['find', "x'; drop table events; --", '--json']);
    expect(run).toMatchObject({ exitCode: 1, stderr: '' });
    expect(JSON.parse(run.stdout)).toEqual({
      id: "x'; drop table events; --",
      events: [],
      objects: [],
      hasMore: false,
    });
    expect(await admin(['find', 'x'.repeat(513)])).toMatchObject({ exitCode: 2 });
    const { stdout } = await admin(['find', 'nothing']);
    expect(stdout).toMatch(/^Nothing has the id "nothing"\. .*webhook-id.*delivery.*serviceMessageId/);
    for (const id of [
      'evt_019a1b2c3d4e7f5061728394a5b6c7d8',
      'dlv_019a1b2c3d4e7f5061728394a5b6c7d8',
      '999999',
    ])
      expect((await admin(['find', id])).exitCode, id).toBe(1);
  });

  test('looks events up by index, not by reading every day', async () => {
    const { database } = await startAdmin();
    await query(
      database,
      `insert into events (day, id, waba_id, tenant_id, phone_number_id, event_type, event_id, lane, sequence)
       select current_date, gen_random_uuid(), :waba, 1, '8', 'status', 'wamid.' || n, 'lane', n
         from generate_series(1, 20000) as n`,
      { waba: WABA },
    );
    await database.raw('analyze events');
    expect(await findEventsForOperator(database, 'wamid.77', 10)).toMatchObject([{ sequence: '77' }]);
    const plan = await query<{ 'QUERY PLAN': string }>(
      database,
      `explain select id from events where waba_id = any (array(select waba_id from wabas)) and event_id = :eventId
        order by created_at desc limit 10`,
      { eventId: 'wamid.77' },
    );
    const text = plan.map((line) => line['QUERY PLAN']).join('\n');
    const today = `events_${new Date().toISOString().slice(0, 10).replaceAll('-', '')}`;
    expect(text).toMatch(new RegExp(`Index Scan[^\n]* on ${today}|Bitmap Index Scan on ${today}`));
    expect(text).not.toMatch(new RegExp(`Seq Scan on ${today}`));
  });
});
