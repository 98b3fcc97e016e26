import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Database } from '../../../src/database/database.ts';
import { query } from '../../../src/database/sql.ts';
import { makeDueFinder } from '../../../src/deliveries/loop/due-finder.ts';
import { makeEndpointLimiter } from '../../../src/deliveries/loop/endpoint-limiter.ts';
import { claimDue, releaseExpired } from '../../../src/deliveries/queue/claim.ts';
import {
  enqueueDeliveries,
  type QueuedDelivery,
  releaseEvent,
} from '../../../src/deliveries/queue/enqueue.ts';
import { leaseDelivery } from '../../../src/deliveries/queue/lease.ts';
import { releaseDueRetries } from '../../../src/deliveries/queue/retries.ts';
import { keepDeliveries, lockClaims } from '../../../src/deliveries/queue/settle.ts';
import { stepAside } from '../../../src/deliveries/queue/step-aside.ts';
import { dayOfUuidV7, uuidV7 } from '../../../src/domain/uuid-v7.ts';
import { claimAll, dueShares } from '../../support/due-shares.ts';
import { seededDice } from '../../support/seeded-dice.ts';
import { deliverHeads } from '../../support/settle-rows.ts';
import { addEndpoint, seedFixtureAccounts } from '../../support/test-accounts.ts';
import { testWorkerDatabase } from '../../support/test-database.ts';

function newRow(endpointId: string, lane: string, released = true): QueuedDelivery {
  const id = uuidV7(Date.now());
  const day = dayOfUuidV7(id);
  return { endpointId, lane, released, deliveryDay: day, deliveryId: id, eventDay: day, eventUuid: id };
}

async function withEndpoints(count: number) {
  const { database } = await testWorkerDatabase(24);
  await seedFixtureAccounts(database);
  const endpoints: string[] = [];
  for (let n = 0; n < count; n += 1) {
    endpoints.push((await addEndpoint(database, '900000000000101', `https://e${n}.example`)).id);
  }
  return { database, endpoints };
}

type Watch = {
  inFlight: Map<string, string>;
  finished: Map<string, string[]>;
  /** The last position that was attempted in each lane. */
  reached: Map<string, bigint>;
  violations: string[];
  aside: number;
};

const newWatch = (): Watch => ({
  inFlight: new Map(),
  finished: new Map(),
  reached: new Map(),
  violations: [],
  aside: 0,
});

/** Where deliveries stand that nobody else can move, because they are claimed. */
async function placesOf(database: Database, ids: readonly string[]): Promise<Map<string, Place>> {
  const rows = await query<Place & { id: string }>(
    database,
    `select delivery_id as id, endpoint_id || ' ' || lane as lane, position from delivery_queue
      where delivery_id = any (?::uuid[])`,
    [ids],
  );
  return new Map(rows.map((row) => [row.id, row]));
}

type Place = { lane: string; position: string };

/** Claims and settles until the queue is empty, by workflows and by loops; failing, giving back and dying at random. */
async function work(database: Database, laneOf: Map<string, string>, watch: Watch, dice: () => number) {
  for (let idle = 0; idle < 200; ) {
    if (dice() < 0.3) await someStepAside(database, watch);
    const claimed = dice() < 0.5 ? await claimAsLoop(database, laneOf, watch, dice) : 0;
    await releaseDueRetries(database, { withinSeconds: 3_600, limit: 2 });
    const open = await query<{ id: string; day: string }>(
      database,
      `select delivery_id as id, delivery_day as day from delivery_queue
        where state in ('due', 'retrying', 'claimed') order by random() limit 5`,
    );
    if (claimed === 0 && open.length === 0) idle += 1;
    for (const { id, day } of open) await attempt(database, { id, day }, laneOf, watch, dice);
    if ((await query(database, 'select 1 from delivery_queue limit 1')).length === 0) return;
  }
  throw new Error('the queue did not run empty');
}

/** As if every retry had been failing for an hour. */
async function someStepAside(database: Database, watch: Watch): Promise<void> {
  await database.raw(`update delivery_queue set first_failed_at = now() - interval '1 hour'
                       where state = 'retrying' and attempts > 0 and first_failed_at > now() - interval '1 minute'`);
  watch.aside += await stepAside(database, { defaultSeconds: 60, limit: 2 });
}

/** A group under one token, attempted side by side and settled in one transaction; now and then the process dies. */
async function claimAsLoop(
  database: Database,
  laneOf: Map<string, string>,
  watch: Watch,
  dice: () => number,
): Promise<number> {
  await releaseExpired(database, { withinSeconds: 3_600, limit: 100 });
  const token = randomUUID();
  const dies = dice() < 0.15;
  const shares = await dueShares(database, 10);
  const claim = { shares, limit: 10, token, leaseMs: dies ? 5 : 60_000 };
  const { orphans: claims } = await claimDue(database, claim);
  if (dies) return claims.length;
  const ids = claims.map((one) => one.deliveryId);
  const places = await placesOf(database, ids);
  for (const id of ids) begin(watch, places.get(id), id);
  await new Promise((resolve) => setTimeout(resolve, dice() * 3));
  for (const id of ids) watch.inFlight.delete(places.get(id)?.lane ?? '');
  const finished = ids.filter(() => dice() < 0.7);
  const kept = ids.filter((id) => !finished.includes(id));
  for (const id of finished) noteFinished(watch, laneOf.get(id) ?? '', id);
  await settle(
    database,
    watch,
    { ids, token },
    finished,
    kept.map((id) => keptRow(id, dice)),
  );
  return claims.length;
}

function keptRow(deliveryId: string, dice: () => number) {
  const retries = dice() < 0.5;
  return {
    deliveryId,
    state: retries ? ('retrying' as const) : ('due' as const),
    attempts: 1,
    probes: 0,
    delayMs: retries ? dice() * 10 : null,
    byWorkflow: retries && dice() < 0.5,
  };
}

async function settle(
  database: Database,
  watch: Watch,
  { ids, token }: { ids: string[]; token: string },
  finished: string[],
  kept: ReturnType<typeof keptRow>[],
) {
  await database.transaction(async (trx) => {
    const ours = await lockClaims(
      trx,
      ids.map((deliveryId) => ({ deliveryId, token })),
    );
    for (const id of ids) if (!ours.has(id)) watch.violations.push(`lost ${id}`);
    await keepDeliveries(trx, kept);
    await deliverHeads(trx, finished);
  });
}

function begin(watch: Watch, place: Place | undefined, id: string) {
  const { lane, position } = place ?? { lane: 'gone', position: '0' };
  const other = watch.inFlight.get(lane);
  if (other !== undefined) watch.violations.push(`${id} beside ${other} in ${lane}`);
  if (BigInt(position) < (watch.reached.get(lane) ?? 0n)) watch.violations.push(`${id} late in ${lane}`);
  watch.reached.set(lane, BigInt(position));
  watch.inFlight.set(lane, id);
}

/** Before the commit: afterwards another worker may already have finished the next one. */
function noteFinished(watch: Watch, lane: string, id: string) {
  watch.finished.set(lane, [...(watch.finished.get(lane) ?? []), id]);
}

async function attempt(
  database: Database,
  { id, day }: { id: string; day: string },
  laneOf: Map<string, string>,
  watch: Watch,
  dice: () => number,
) {
  const token = randomUUID();
  const dies = dice() < 0.15;
  const lease = { deliveryId: id, deliveryDay: day, token, leaseMs: dies ? 5 : 60_000 };
  const answer = await leaseDelivery(database, lease);
  if (answer.kind !== 'claimed' || dies) return;
  const lane = laneOf.get(id) ?? '';
  const place = (await placesOf(database, [id])).get(id);
  begin(watch, place, id);
  await new Promise((resolve) => setTimeout(resolve, dice() * 3));
  watch.inFlight.delete(place?.lane ?? '');
  const what = dice();
  const isFinished = what >= 0.35;
  if (isFinished) noteFinished(watch, lane, id);
  await settle(
    database,
    watch,
    { ids: [id], token },
    isFinished ? [id] : [],
    isFinished ? [] : [keptRow(id, dice)],
  );
}

describe('the queue keeps the order of each lane', () => {
  test('over concurrent writers, four workers, failures, steps aside, lost leases and late releases; and loses nothing', {
    timeout: 150_000,
  }, async () => {
    const { database, endpoints } = await withEndpoints(2);
    await database.raw(`update webhook_endpoints set mode_changed_at = now() - interval '1 day'`);
    let aside = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.record({
            endpoint: fc.nat(1),
            lanes: fc.array(fc.record({ lane: fc.nat(3), held: fc.boolean() }), {
              minLength: 1,
              maxLength: 8,
            }),
          }),
          { minLength: 1, maxLength: 12 },
        ),
        fc.integer(),
        async (transactions, seed) => {
          const dice = seededDice(seed);
          const watch = newWatch();
          const laneOf = new Map<string, string>();
          const written: string[] = [];
          const write = async ({ endpoint, lanes }: (typeof transactions)[number]) => {
            const rows = lanes.map(({ lane, held }) =>
              newRow(endpoints[endpoint] ?? '', `lane ${lane}`, !held),
            );
            for (const row of rows) laneOf.set(row.deliveryId, `${row.endpointId} ${row.lane}`);
            await database.transaction((trx) => enqueueDeliveries(trx, rows));
            written.push(...rows.map((row) => row.deliveryId));
            for (const row of rows) {
              if (row.released) continue;
              await new Promise((resolve) => setTimeout(resolve, dice() * 5));
              await database.transaction((trx) => releaseEvent(trx, row.eventUuid));
            }
          };
          const workers = Promise.all(Array.from({ length: 4 }, () => work(database, laneOf, watch, dice)));
          await Promise.all(transactions.map(write));
          await workers;
          await work(database, laneOf, watch, dice);
          expect(watch.violations).toEqual([]);
          aside += watch.aside;
          expect([...watch.finished.values()].flat().sort()).toEqual([...written].sort());
          for (const { endpoint, lanes } of transactions)
            expect(lanes.length * (endpoint + 1)).toBeGreaterThan(0);
        },
      ),
      { numRuns: 25, endOnFailure: true },
    );
    expect(aside).toBeGreaterThan(0);
  });

  test('rows that one transaction queues in a lane leave it in their order, also behind rows of another', async () => {
    const { database, endpoints } = await withEndpoints(1);
    const [endpoint = ''] = endpoints;
    const batches = Array.from({ length: 20 }, () =>
      Array.from({ length: 10 }, (_, n) => newRow(endpoint, `lane ${n % 3}`)),
    );
    const laneOf = new Map(batches.flat().map((row) => [row.deliveryId, row.lane]));
    const watch = newWatch();
    const workers = Promise.all(Array.from({ length: 4 }, () => work(database, laneOf, watch, () => 0.9)));
    await Promise.all(batches.map((rows) => database.transaction((trx) => enqueueDeliveries(trx, rows))));
    await workers;
    await work(database, laneOf, watch, () => 0.9);
    for (const rows of batches) {
      for (const lane of ['lane 0', 'lane 1', 'lane 2']) {
        const expected = rows.filter((row) => row.lane === lane).map((row) => row.deliveryId);
        const got = (watch.finished.get(lane) ?? []).filter((id) => expected.includes(id));
        expect(got).toEqual(expected);
      }
    }
  });

  test('of an endpoint that is not open nothing is claimed, and everything once it is', async () => {
    const { database, endpoints } = await withEndpoints(2);
    const [off = '', on = ''] = endpoints;
    await database.raw(`update webhook_endpoints set mode = 'paused' where id = ?`, [off]);
    const rows = [newRow(off, 'a'), newRow(off, 'b'), newRow(on, 'a')];
    await database.transaction((trx) => enqueueDeliveries(trx, rows));
    expect((await claimAll(database)).taken.map((row) => row.endpointId)).toEqual([on]);
    await database.raw(`update webhook_endpoints set mode = 'open' where id = ?`, [off]);
    expect((await claimAll(database)).taken).toHaveLength(2);
  });

  test('one endpoint never takes more than its share of a claim', async () => {
    const { database, endpoints } = await withEndpoints(2);
    const [busy = '', calm = ''] = endpoints;
    const rows = Array.from({ length: 100 }, (_, n) => newRow(busy, `lane ${n}`));
    await database.transaction((trx) => enqueueDeliveries(trx, [...rows, newRow(calm, 'a')]));
    const { taken } = await claimAll(database, { share: 5 });
    expect(taken.filter((row) => row.endpointId === busy)).toHaveLength(5);
    expect(taken.filter((row) => row.endpointId === calm)).toHaveLength(1);
  });

  test('endpoints are served in turn: one with a low id cannot starve one with a high id', async () => {
    const { database, endpoints } = await withEndpoints(3);
    const rows = endpoints.flatMap((id) => Array.from({ length: 6 }, (_, n) => newRow(id, `lane ${n}`)));
    await database.transaction((trx) => enqueueDeliveries(trx, rows));
    const limit = 2;
    const due = makeDueFinder({ database, limiter: makeEndpointLimiter() });
    const served: string[] = [];
    for (let turn = 0; turn < 4; turn += 1) {
      const shares = await due.find(limit);
      const claim = { shares, limit, token: randomUUID(), leaseMs: 60_000 };
      const { taken, orphans } = await claimDue(database, claim);
      due.took(shares, taken, limit);
      served.push(...new Set(taken.map((row) => row.endpointId)));
      await database.raw('delete from delivery_queue where delivery_id = any (?)', [
        orphans.map((row) => row.deliveryId),
      ]);
    }
    const [a, b, c] = endpoints;
    expect(served).toEqual([a, b, c, a]);
  });
});
