import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { probeNow } from '../../../src/engine/endpoint/probes.ts';
import { type ClaimedDelivery, releaseClaims } from '../../../src/engine/queue/claim.ts';
import { claimOne } from '../../../src/engine/queue/claim-one.ts';
import { removeDeliveries } from '../../../src/engine/queue/remove.ts';
import { applyReplayState } from '../../../src/engine/queue/replay-queue.ts';
import { bringForward, retryOne, retryWaiting } from '../../../src/engine/queue/retry.ts';
import { findClaims, putOffClaim } from '../../../src/engine/queue/settle.ts';
import { stepAside } from '../../../src/engine/queue/sweep.ts';
import { type Database, type Transaction, undone } from '../../../src/platform/postgres/database.ts';
import { claimAll } from '../../support/due-shares.ts';
import { addEndpoints, queueEach } from '../../support/many-endpoints.ts';
import { rowsRead } from '../../support/rows-read.ts';
import { settleAndFollow } from '../../support/settle-rows.ts';
import { seedFixtureAccounts } from '../../support/test-accounts.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { vacuumed } from '../../support/vacuumed.ts';

const WABA = '900000000000101';
const CLAIMS = 8;

/** Of others, in each of the states in which rows wait for a moment. */
const OTHERS = 4_000;

type Own = { endpointId: string; token: string; deliveries: ClaimedDelivery[] };

const idsOf = ({ deliveries }: Own): string[] => deliveries.map(({ deliveryId }) => deliveryId);

type Change = { prepare?: keyof typeof PREPARED; change: (trx: Transaction, own: Own) => Promise<unknown> };

const REPLAY = { id: '1', wabaId: WABA, createdAt: new Date() };

/** SQL that brings what is claimed of the endpoint `own.id` into another state. */
const PREPARED = {
  retried: `update delivery_queue q
      set state = 'retrying', attempts = 1, token = null, lease_until = null, next_attempt_at = now() + interval '1 hour',
          first_failed_at = now() - interval '1 hour', blocks = 'other'
     from own where q.endpoint_id = own.id and q.state = 'claimed'`,
  probed: `update endpoint_health h set mode = 'probing', next_probe_at = now() + interval '1 hour'
     from own where h.endpoint_id = own.id`,
  paused: `with replayed as (update deliveries d set replay_id = ${REPLAY.id} from own
      where d.id in (select delivery_id from delivery_queue q where q.endpoint_id = own.id))
     update delivery_queue q set state = 'suspended', released = false, replay = true, token = null, lease_until = null
     from own where q.endpoint_id = own.id and q.state = 'claimed'`,
} as const;

/** What changes or reads some deliveries of one endpoint, which are claimed under one token unless they are retried. */
const CHANGES: Readonly<Record<string, Change>> = {
  'records attempts': { change: (trx, { deliveries, token }) => settleAndFollow(trx, deliveries, token) },
  'asks whether claims are in force': {
    change: (trx, { deliveries, token }) =>
      findClaims(
        trx,
        deliveries.map(({ deliveryId }) => ({ deliveryId, token })),
      ),
  },
  'puts off a claim': {
    change: (trx, { deliveries: [first], token }) =>
      putOffClaim(trx, { ...idOf(first), token, attempts: 1, delayMs: 1_000, run: null }),
  },
  'releases claims': { change: (trx, own) => releaseClaims(trx, own.token, idsOf(own)) },
  'claims one delivery': {
    prepare: 'retried',
    change: (trx, { deliveries: [first] }) =>
      claimOne(trx, { ...idOf(first), token: randomUUID(), leaseMs: 30_000 }),
  },
  'takes deliveries out of the queue': {
    change: (trx, own) => removeDeliveries(trx, idsOf(own), { reason: 'test', underWayToo: true }),
  },
  'retries one delivery': {
    prepare: 'retried',
    change: (trx, { deliveries: [first] }) => retryOne(trx, idOf(first).deliveryId),
  },
  'retries all that wait for an endpoint': {
    prepare: 'retried',
    change: (trx, { endpointId }) => retryWaiting(trx, endpointId),
  },
  'brings retries forward': {
    prepare: 'retried',
    change: (trx, { endpointId }) =>
      bringForward(trx, endpointId, { soonSeconds: 0, mayGoOn: async () => true }),
  },
  'makes a probe due': { prepare: 'probed', change: (trx, { endpointId }) => probeNow(trx, endpointId) },
  'resumes a replay': {
    prepare: 'paused',
    change: (trx) => applyReplay(trx, 'running'),
  },
  'pauses a replay': {
    prepare: 'paused',
    change: async (trx) => {
      await applyReplay(trx, 'running');
      await applyReplay(trx, 'paused');
    },
  },
  'lets deliveries step aside': {
    prepare: 'retried',
    change: (trx) => stepAside(trx, { defaultSeconds: 60, limit: 50 }),
  },
};

function idOf(delivery: ClaimedDelivery | undefined): { deliveryId: string; deliveryDay: string } {
  const { deliveryId = '', deliveryDay = '' } = delivery ?? {};
  return { deliveryId, deliveryDay };
}

async function applyReplay(trx: Transaction, state: 'running' | 'paused'): Promise<void> {
  const replay = { ...REPLAY, state };
  await applyReplayState(trx, replay, async () => replay);
}

/** Claims and retries of another endpoint, as those of one that hangs. */
async function addOthers(database: Database, endpointId: string): Promise<void> {
  const others = Array.from({ length: 3 * OTHERS }, () => endpointId);
  await queueEach(database, WABA, others, () => `lane ${randomUUID()}`);
  const change = (remainder: number, values: string) =>
    database.raw(
      `update delivery_queue set ${values} where endpoint_id = ${endpointId} and position % 3 = ${remainder}`,
    );
  await change(0, `state = 'claimed', token = gen_random_uuid(), lease_until = now() + interval '1 hour'`);
  await change(
    1,
    `state = 'retrying', attempts = 1, next_attempt_at = now() + interval '1 hour', first_failed_at = now()`,
  );
  await change(2, `state = 'suspended', released = false, replay = true`);
}

/** A queue that held much more when the planner was last told of it: many pages, hardly a row. */
async function forgetFull(database: Database, endpointId: string): Promise<void> {
  await database.raw('alter table delivery_queue set (autovacuum_enabled = false)');
  await queueEach(
    database,
    WABA,
    Array.from({ length: 20_000 }, () => endpointId),
    () => `lane ${randomUUID()}`,
  );
  await database.raw(
    'delete from delivery_queue where position < (select max(position) - 6 from delivery_queue)',
  );
  await vacuumed(database, 'vacuum analyze delivery_queue');
  await database.raw('delete from delivery_queue');
}

describe('beside thousands of claims and retries of others, by the statistics of an empty queue, reads own rows only: what', () => {
  const made = {} as TestDatabase & { own: Own; others: string };
  beforeAll(async () => {
    Object.assign(made, await createTestDatabase(1, true));
    const { database } = made;
    await seedFixtureAccounts(database);
    const urls = ['https://own.example', 'https://others.example'];
    const [endpointId = '', others = ''] = await addEndpoints(database, WABA, { urls, ratePerSecond: null });
    await forgetFull(database, endpointId);
    const own = Array.from({ length: 2 * CLAIMS }, () => endpointId);
    await queueEach(database, WABA, own, (n) => `lane ${n >> 1}`);
    const { deliveries, token } = await claimAll(database, { limit: CLAIMS });
    Object.assign(made, { own: { endpointId, token, deliveries } });
    await addOthers(database, others);
  });
  afterAll(() => made.close());

  test.each(Object.entries(CHANGES))('%s', async (_name, { prepare, change }) => {
    const { database, own } = made;
    await undone(database, async (trx) => {
      if (prepare !== undefined)
        await trx.raw(
          `with own as (select ${own.endpointId}::bigint as id) ${PREPARED[prepare].replace(/^with /, ', ')}`,
        );
      await trx.raw(`update endpoint_health set mode_changed_at = now() - interval '1 day'`);
      const before = await rowsRead(trx, 'delivery_queue');
      await change(trx, own);
      const read = (await rowsRead(trx, 'delivery_queue')) - before;
      expect(read).toBeLessThan(10 * 2 * CLAIMS);
    });
  });
});
