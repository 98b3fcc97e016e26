import { describe, expect, test } from 'vitest';
import { claimOne } from '../../../src/engine/queue/claim-one.ts';
import { lockLanes } from '../../../src/engine/queue/order-scope.ts';
import { dropWaiting } from '../../../src/engine/queue/remove.ts';
import { stepAside } from '../../../src/engine/queue/sweep.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { ACCOUNT, bodyOf, messageStatus } from '../../support/load/upstream-bodies.ts';
import { deliverHeads } from '../../support/settle-rows.ts';
import { takeIn } from '../../support/take-in.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { seededDatabase } from '../../support/test-database.ts';

const WABA = '900000000000101';

type Row = { id: string; day: string; lane: string; state: string; attempts: number; aside: boolean };

const rowsOf = (database: Database) =>
  query<Row>(
    database,
    `select delivery_id as id, delivery_day as day, lane, state, attempts, stepped_aside_at is not null as aside
       from delivery_queue order by position`,
  );

/** Statuses of one message; the first fails and has done so for `minutes`. */
async function failing(minutes: number, steps: string[] = ['sent', 'delivered', 'read']) {
  const { database } = await seededDatabase();
  const { id } = await addEndpoint(database, WABA, 'https://tenant.example/hook');
  await database.raw(`update endpoint_health set mode_changed_at = now() - interval '1 day'`);
  await takeIn(database, ...steps.map((step) => bodyOf(ACCOUNT, [messageStatus('wamid.BLOCK', step)])));
  await failFor(database, minutes);
  return { database, id };
}

const failFor = (database: Database, minutes: number) =>
  database.raw(
    `update delivery_queue set state = 'retrying', attempts = 3, next_attempt_at = now() + interval '1 hour',
            first_failed_at = now() - interval '${minutes} minutes',
            blocks = blocks_now(endpoint_id, lane, event_day, event_uuid) where state = 'due'`,
  );

describe('when a head steps aside', () => {
  const cases: [string, { minutes: number; sql?: string; hours?: number; steps: number }][] = [
    ['no status by default, for days', { minutes: 4_000, steps: 0 }],
    ['an order after 15 minutes', { minutes: 16, sql: `update events set event_type = 'order'`, steps: 1 }],
    ['no order before that', { minutes: 14, sql: `update events set event_type = 'order'`, steps: 0 }],
    [
      'anything at a wide scope after 15 minutes',
      { minutes: 16, sql: `update webhook_endpoints set order_scope = 'endpoint'`, steps: 1 },
    ],
    [
      'whatever the endpoint says, for every event',
      { minutes: 2, sql: 'update webhook_endpoints set block_limit_seconds = 60', steps: 1 },
    ],
    [
      'never where the endpoint says 0',
      {
        minutes: 4_000,
        hours: 1,
        sql: `update webhook_endpoints set block_limit_seconds = 0, order_scope = 'endpoint'`,
        steps: 0,
      },
    ],
    ['after the installation’s limit, for every event', { minutes: 61, hours: 1, steps: 1 }],
    [
      'not while its endpoint takes nothing',
      { minutes: 61, hours: 1, sql: `update endpoint_health set mode = 'paused'`, steps: 0 },
    ],
    [
      'not while an attempt is under way',
      {
        minutes: 61,
        hours: 1,
        sql: `update delivery_queue set state = 'claimed' where state = 'retrying'`,
        steps: 0,
      },
    ],
  ];
  test.each(cases)('%s', async (_, { minutes, sql, hours = 0, steps }) => {
    const { database } = await failing(minutes);
    if (sql !== undefined) await database.raw(sql);
    await database.raw(
      'update delivery_queue set blocks = blocks_now(endpoint_id, lane, event_day, event_uuid)',
    );
    expect(await stepAside(database, { defaultSeconds: hours * 3_600, limit: 10 })).toBe(steps);
    expect((await rowsOf(database)).map(({ aside }) => aside)).toEqual([steps === 1, false, false]);
  });

  test('not while nothing waits behind it', async () => {
    const { database } = await failing(61, ['sent']);
    expect(await stepAside(database, { defaultSeconds: 60, limit: 10 })).toBe(0);
  });
});

test('a head steps aside for one that is queued after its last attempt', async () => {
  const { database } = await failing(61, ['sent']);
  await takeIn(database, bodyOf(ACCOUNT, [messageStatus('wamid.BLOCK', 'delivered')]));
  expect(await stepAside(database, { defaultSeconds: 60, limit: 10 })).toBe(1);
  expect((await rowsOf(database)).map(({ state }) => state)).toEqual(['retrying', 'due']);
});

describe('a delivery that stepped aside', () => {
  const ONE_MINUTE = { defaultSeconds: 60, limit: 10 };

  test('keeps its retries, and those behind it go on in their order; several may be aside', async () => {
    const { database } = await failing(5);
    const [first, second, third] = await rowsOf(database);
    expect(await stepAside(database, ONE_MINUTE)).toBe(1);
    expect(await rowsOf(database)).toEqual([
      { ...first, lane: `aside/${first?.id}`, aside: true },
      { ...second, state: 'due' },
      third,
    ]);
    await failFor(database, 5);
    expect(await stepAside(database, ONE_MINUTE)).toBe(1);
    expect((await rowsOf(database)).map(({ state, aside }) => [state, aside])).toEqual([
      ['retrying', true],
      ['retrying', true],
      ['due', false],
    ]);
    const log = await query(
      database,
      `select state, attempts, stepped_aside_at is not null as aside from deliveries order by id`,
    );
    expect(log).toMatchObject([
      { state: 'pending', aside: true },
      { state: 'pending', aside: true },
      { state: 'pending', aside: false },
    ]);
    await database.raw(
      `update delivery_queue set next_attempt_at = now() where delivery_id = '${first?.id}'`,
    );
    const token = '00000000-0000-4000-8000-000000000001';
    const lease = { deliveryId: first?.id ?? '', deliveryDay: first?.day ?? '', token, leaseMs: 30_000 };
    expect(await claimOne(database, lease)).toMatchObject({ kind: 'claimed', delivery: { attempts: 3 } });
    await database.transaction((trx) => deliverHeads(trx, [lease.deliveryId]));
    expect((await rowsOf(database)).map(({ state }) => state)).toEqual(['retrying', 'due']);
  });

  test('is not overtaken by what is queued while it moves: that goes behind the new head', async () => {
    const { database } = await failing(5, ['sent', 'delivered']);
    const read = () => takeIn(database, bodyOf(ACCOUNT, [messageStatus('wamid.BLOCK', 'read')]));
    await Promise.all([stepAside(database, ONE_MINUTE), read()]);
    const [, second, third] = await rowsOf(database);
    expect([second?.state, third?.state, third?.lane]).toEqual(['due', 'queued', second?.lane]);
  });

  test('is dropped with the rest of its endpoint', async () => {
    const { database, id } = await failing(5);
    await stepAside(database, ONE_MINUTE);
    await dropWaiting(database, id, { reason: 'not wanted' });
    expect(await rowsOf(database)).toEqual([]);
  });

  test('keeps no order scope from changing', async () => {
    const { database, id } = await failing(5, ['sent', 'delivered']);
    await stepAside(database, ONE_MINUTE);
    const pending = () => database.transaction((trx) => lockLanes(trx, { wabaId: WABA, id }));
    expect(await pending()).toMatchObject({ count: 1 });
    const due = (await rowsOf(database)).find(({ state }) => state === 'due');
    await database.transaction((trx) => deliverHeads(trx, [due?.id ?? '']));
    expect(await rowsOf(database)).toMatchObject([{ aside: true }]);
    expect(await pending()).toMatchObject({ count: 0 });
  });
});

test('heads step aside one after the other: they leave the connections to attempts', async () => {
  const { database } = await failing(2);
  const others = Array.from({ length: 8 }, (_, n) => ['sent', 'read'].map((step) => [`wamid.${n}`, step]));
  await takeIn(
    database,
    ...others.flat().map(([id = '', step = '']) => bodyOf(ACCOUNT, [messageStatus(id, step)])),
  );
  await failFor(database, 2);
  await database.raw('update webhook_endpoints set block_limit_seconds = 60');
  let open = 0;
  let most = 0;
  const counting: Database = {
    ...database,
    transaction: async (work) => {
      open += 1;
      most = Math.max(most, open);
      return await database.transaction(work).finally(() => {
        open -= 1;
      });
    },
  };
  expect(await stepAside(counting, { defaultSeconds: 0, limit: 50 })).toBe(9);
  expect(most).toBe(1);
});
