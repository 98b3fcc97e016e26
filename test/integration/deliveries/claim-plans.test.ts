import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { ageDatabase } from '../../../bench/stack/aged-database.ts';
import { listLateEndpoints, oldestDueAt } from '../../../src/engine/deliveries/backlog.ts';
import { EndpointLimiter } from '../../../src/engine/deliveries/loop/attempt-limits.ts';
import { DueFinder } from '../../../src/engine/deliveries/loop/claiming.ts';
import { findFailingFor } from '../../../src/engine/endpoint/endpoint-health.ts';
import { findChangedEndpoints } from '../../../src/engine/endpoint/endpoint-settings.ts';
import {
  claimDue,
  claimProbes,
  findLatelyDue,
  lastPosition,
  releaseExpired,
} from '../../../src/engine/queue/claim.ts';
import { claimOne } from '../../../src/engine/queue/claim-one.ts';
import { lockLanes } from '../../../src/engine/queue/order-scope.ts';
import { findLate, releaseDueRetries, stepAside } from '../../../src/engine/queue/sweep.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { buffersTouched } from '../../support/buffers-touched.ts';
import { dueShares } from '../../support/due-shares.ts';
import { holdSnapshot } from '../../support/held-snapshot.ts';
import { addEndpoints, queueEach } from '../../support/many-endpoints.ts';
import { partitionsOpened } from '../../support/partitions-opened.ts';
import { seedFixtureAccounts } from '../../support/test-accounts.ts';
import { testWorkerDatabase } from '../../support/test-database.ts';
import { vacuumed } from '../../support/vacuumed.ts';

const WABA = '900000000000101';
const LEASE_MS = 30_000;

async function withEndpoints(count: number, poolMax = 2) {
  const created = await testWorkerDatabase(poolMax);
  await seedFixtureAccounts(created.database);
  const urls = Array.from({ length: count }, (_, n) => `https://e${n}.example`);
  return { ...created, ids: await addEndpoints(created.database, WABA, { urls, ratePerSecond: 100 }) };
}

/** Claims as a session does, `most` at most; returns how many. */
function claimer(database: Database) {
  const limiter = new EndpointLimiter();
  return async (most: number, explaining = database): Promise<number> => {
    const due = new DueFinder({ database: explaining, limiter });
    const shares = await due.find(most);
    if (shares.length === 0) return 0;
    const claim = { shares, limit: most, token: randomUUID(), leaseMs: LEASE_MS };
    return (await claimDue(explaining, claim)).length;
  };
}

/** What the planner knows, and how the queue is cleared up once it is full. */
const STATISTICS = [
  ['new statistics', 'vacuum analyze'],
  ['statistics of an empty queue', 'vacuum'],
] as const;

/** Gives the planner statistics of an empty queue; it gets no others until it is asked to. */
async function knowEmptyQueue(database: Database, ids: readonly string[]): Promise<void> {
  await database.raw('alter table delivery_queue set (autovacuum_enabled = false)');
  await queueEach(database, WABA, ids.slice(0, 1), () => `lane ${randomUUID()}`);
  await database.raw('analyze delivery_queue');
  await database.raw('delete from delivery_queue');
}

describe('a claim', () => {
  test('of one delivery touches as much with 10,000 limited endpoints that have something due as with one', async () => {
    const one = await withEndpoints(1);
    const many = await withEndpoints(10_000);
    const touched: number[] = [];
    for (const { database, ids } of [one, many]) {
      await queueEach(database, WABA, ids, (n) => `lane ${n}`);
      await vacuumed(database);
      const claim = claimer(database);
      touched.push(await buffersTouched(database, (explaining) => claim(1, explaining)));
    }
    const [few = 0, most = 0] = touched;
    // One page of endpoints, and indexes that are deeper.
    expect(most, `${few} and ${most} pages`).toBeLessThan(few + 512 * 8);
  });

  test.each(STATISTICS)(
    'of ten of 12,000 that are due at an endpoint reads no others, with %s',
    async (_case, clear) => {
      const { database, ids } = await withEndpoints(1);
      const endpoints = Array.from({ length: 12_000 }, () => ids[0] ?? '');
      await knowEmptyQueue(database, ids);
      await queueEach(database, WABA, endpoints, (n) => `lane ${n}`);
      await vacuumed(database, clear);
      const claim = claimer(database);
      expect(await buffersTouched(database, (explaining) => claim(10, explaining))).toBeLessThan(1_000);
    },
  );

  test('is late: to see that reads none of the 3,000 that are due behind the first attempt', async () => {
    const { database, ids } = await withEndpoints(1);
    await queueEach(
      database,
      WABA,
      Array.from({ length: 3_000 }, () => ids[0] ?? ''),
      (n) => `lane ${n}`,
    );
    await vacuumed(database);
    const look = (explaining: Database) => oldestDueAt(explaining);
    expect(await buffersTouched(database, look)).toBeLessThan(60);
    await database.raw('update delivery_queue set attempts = 1');
    await vacuumed(database);
    expect(await oldestDueAt(database)).toBeNull();
    expect(await buffersTouched(database, look)).toBeLessThan(500);
  });

  test('of 512 deliveries passes over no other endpoint', async () => {
    const { database, ids } = await withEndpoints(10_000);
    await queueEach(database, WABA, ids, (n) => `lane ${n}`);
    await vacuumed(database);
    const claim = claimer(database);
    let claimed = 0;
    const touched = await buffersTouched(database, async (explaining) => {
      claimed = await claim(512, explaining);
    });
    expect(claimed).toBe(512);
    expect(touched / claimed, `${touched} pages`).toBeLessThan(100);
  });
});

test('what is asked about endpoints once a second reads none of 50,000 that it is not about', async () => {
  const { database, ids } = await withEndpoints(50_000);
  await database.raw(`update webhook_endpoints set updated_at = now() - interval '1 hour';
                      update endpoint_health set mode_changed_at = now() - interval '1 hour'`);
  await queueEach(database, WABA, ids.slice(0, 3), (n) => `lane ${n}`);
  await vacuumed(database);
  const statements: [string, (explaining: Database) => Promise<unknown>][] = [
    ['findChangedEndpoints', (explaining) => findChangedEndpoints(explaining, 30)],
    [
      'claimProbes',
      (explaining) => claimProbes(explaining, { limit: 20, token: randomUUID(), leaseMs: LEASE_MS }),
    ],
    ['findFailingFor', (explaining) => findFailingFor(explaining, 120)],
    [
      'lockLanes',
      (explaining) => explaining.transaction((trx) => lockLanes(trx, { wabaId: WABA, id: ids[0] ?? '' })),
    ],
    ['oldestDueAt', (explaining) => oldestDueAt(explaining)],
    [
      'listLateEndpoints',
      (explaining) => listLateEndpoints(explaining, { minutes: 15, lasting: ids.slice(0, 2), limit: 5_000 }),
    ],
  ];
  for (const [name, run] of statements) {
    expect(await buffersTouched(database, run), name).toBeLessThan(60);
  }
});

test.each(STATISTICS)(
  'a probe of an endpoint at which 20,000 wait reads those at either end only, with %s',
  async (_case, clear) => {
    const { database, ids } = await withEndpoints(1);
    await knowEmptyQueue(database, ids);

    const endpoints = Array.from({ length: 20_000 }, () => ids[0] ?? '');
    await queueEach(database, WABA, endpoints, (n) => `lane ${n}`);
    await database.raw(
      `update endpoint_health set mode = 'probing', next_probe_at = now(), probe_failures = 7`,
    );
    await vacuumed(database, clear);

    let claimed = 0;
    const touched = await buffersTouched(database, async (explaining) => {
      const claim = { limit: 20, token: randomUUID(), leaseMs: LEASE_MS };
      claimed = (await claimProbes(explaining, claim)).length;
    });
    expect(claimed).toBe(1);
    expect(touched).toBeLessThan(250);
  },
);

test.each([
  [
    'claimDue',
    'open',
    async (database: Database) => {
      const shares = await dueShares(database, 10);
      return await claimDue(database, { shares, limit: 10, token: randomUUID(), leaseMs: LEASE_MS });
    },
  ],
  [
    'claimProbes',
    'probing',
    (database: Database) => claimProbes(database, { limit: 20, token: randomUUID(), leaseMs: LEASE_MS }),
  ],
  [
    'claimOne',
    'paused',
    async (database: Database) => {
      const [one] = await query<{ deliveryId: string; deliveryDay: string }>(
        database,
        'select delivery_id as "deliveryId", delivery_day as "deliveryDay" from delivery_queue limit 1',
      );
      if (one === undefined) throw new Error('nothing is queued');
      const claimed = await claimOne(database, { ...one, token: randomUUID(), leaseMs: LEASE_MS });
      return claimed.kind === 'claimed' ? [claimed.delivery] : [];
    },
  ],
] as const)(
  '%s on a database of 98 days opens the one day of its events, and reads no more than on a new one',
  async (_name, mode, claim) => {
    const { database, ids } = await withEndpoints(5, 1);
    await database.raw(`update endpoint_health set mode = '${mode}', next_probe_at = now()`);
    const look = async () => {
      await vacuumed(database);
      const opened = await partitionsOpened(database, async (trx) => {
        expect((await claim(trx)).length).toBeGreaterThan(0);
      });
      const touched = await buffersTouched(database, async (explaining) => {
        expect((await claim(explaining)).length).toBeGreaterThan(0);
      });
      return { opened, touched };
    };
    const queueMore = async () => {
      await queueEach(database, WABA, ids, () => `lane ${randomUUID()}`);
      await database.raw(`update events set event_type = 'test'`);
    };
    await queueMore();
    const young = await look();
    await ageDatabase(database, { keysPerDay: 1 });
    await database.raw(`delete from delivery_queue; update endpoint_health set next_probe_at = now()`);
    await queueMore();
    const aged = await look();
    expect(aged.opened).toEqual(young.opened);
    expect(aged.opened).toHaveLength(1);
    expect(aged.touched, `${young.touched} pages before`).toBeLessThan(1.5 * young.touched);
  },
);

test.each(STATISTICS)(
  'a look for heads that block others for too long reads none that have no limit, and none that block nobody, with %s',
  async (_case, clear) => {
    const { database, ids } = await withEndpoints(200);
    await knowEmptyQueue(database, ids);
    const look = async (heads: number) => {
      const endpoints = Array.from({ length: heads }, (_, n) => ids[n % ids.length] ?? '');
      const lane = (n: number) => `lane ${n}`;
      await database.raw('delete from delivery_queue');
      await queueEach(database, WABA, endpoints, lane);

      await database.raw(
        `update delivery_queue set state = 'retrying', attempts = 3, first_failed_at = now() - interval '2 hours',
              next_attempt_at = now() + interval '1 hour'`,
      );
      // Every other one blocks, and those of the last endpoint are the ones with a limit.
      await queueEach(database, WABA, endpoints.slice(0, heads / 2), lane);
      await database.raw(`update webhook_endpoints set block_limit_seconds = case when id = ${ids.at(-1)} then 10800 end;
                          update endpoint_health set mode_changed_at = now() - interval '1 day'`);
      await vacuumed(database, clear);
      return await buffersTouched(database, (explaining) =>
        stepAside(explaining, { defaultSeconds: 0, limit: 50 }),
      );
    };
    const few = await look(400);
    const many = await look(12_000);
    expect(many, `${few} pages, then ${many}`).toBeLessThan(2 * few);
  },
);

/** Queues, claims and takes out as many deliveries, whose leases would have ended an hour ago. */
async function deliver(database: Database, ids: readonly string[], count: number): Promise<void> {
  const endpoints = Array.from({ length: count }, (_, n) => ids[n % ids.length] ?? '');
  await queueEach(database, WABA, endpoints, () => `lane ${randomUUID()}`);
  await database.raw(`update delivery_queue set state = 'claimed', lease_until = now() - interval '1 hour'`);
  await database.raw('delete from delivery_queue');
}

test.each([
  ['new statistics', 'analyze delivery_queue'],
  ['statistics of an empty queue', 'select 1'],
])(
  'with an old snapshot, looks for new work walk over nothing that was delivered before, with %s',
  async (_case, clear) => {
    const { database, ids, url } = await withEndpoints(10);
    await vacuumed(database);
    await knowEmptyQueue(database, ids);
    await holdSnapshot(url);

    const look = async () => {
      await vacuumed(database, clear);
      const latelyAfter = String(Number(await lastPosition(database)) - 2_000);
      await queueEach(database, WABA, ids.slice(0, 1), () => `lane ${randomUUID()}`);
      const touched = await buffersTouched(database, async (explaining) => {
        const [found] = await findLatelyDue(explaining, latelyAfter);
        if (found === undefined) throw new Error('what is new was not found');
        const { endpointId, replay, position } = found;
        const shares = [{ endpointId, replay, position, share: 10 }];
        await claimDue(explaining, { shares, limit: 10, token: randomUUID(), leaseMs: LEASE_MS });
        await releaseExpired(explaining, { withinSeconds: 125, limit: 5_000 });
        const retries = { withinSeconds: 125, runGraceMs: 3_000, limit: 1_000 };
        await releaseDueRetries(explaining, retries);
        await findLate(explaining, { ...retries, limit: 20 });
      });
      await database.raw('delete from delivery_queue');
      return touched;
    };
    await deliver(database, ids, 3_000);
    const before = await look();
    await deliver(database, ids, 24_000);
    const after = await look();
    expect(after, `${before} pages, then ${after}`).toBeLessThan(1.5 * before);
  },
);
