import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { EndpointLimiter } from '../../../src/engine/deliveries/loop/attempt-limits.ts';
import { DueFinder } from '../../../src/engine/deliveries/loop/claiming.ts';
import { claimDue } from '../../../src/engine/queue/claim.ts';
import { enqueueDeliveries } from '../../../src/engine/queue/enqueue.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { claimAll } from '../../support/due-shares.ts';
import { newQueuedRow as newRow } from '../../support/queued-rows.ts';
import { seededDice } from '../../support/seeded-dice.ts';
import { settleAndFollow } from '../../support/settle-rows.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { seededWorkerDatabase } from '../../support/test-database.ts';
import {
  applyScopes,
  OPERATIONS,
  type Operation,
  operate,
  type Publication,
  publish,
  queuePages,
  releaseOne,
  resumeAll,
} from './queue-world/operators.ts';
import { ALL_MOVES, checkMoves, judge } from './queue-world/verdict.ts';
import { loopTurn, sweepTurn, workflowTurn } from './queue-world/workers.ts';
import { makeWorld, noteMoves, type World } from './queue-world/world.ts';

/** How many worlds; `QUEUE_ORDER_SEED` begins with the scripts of a failure. */
const RUNS = Number(process.env.QUEUE_ORDER_RUNS ?? 12);
const SEED = process.env.QUEUE_ORDER_SEED;

/** Turns after which a queue that is not empty is stuck. */
const MAX_TURNS = 300;

type Script = { publications: Publication[]; operations: Operation[]; seed: number };

const operation = (what: fc.Arbitrary<Operation['what']>): fc.Arbitrary<Operation> =>
  fc.record({ what, endpoint: fc.nat(3), choice: fc.nat(4) });

/** Every operation happens in every world, so that every transition is seen within few. */
const scripts: fc.Arbitrary<Script> = fc.record({
  publications: fc.array(
    fc.record({
      waba: fc.constantFrom(0, 0, 1),
      items: fc.array(fc.record({ key: fc.nat(3), reserved: fc.constantFrom(false, false, true) }), {
        minLength: 1,
        maxLength: 6,
      }),
      beside: fc.constantFrom(false, false, false, true),
    }),
    { minLength: 16, maxLength: 40 },
  ),
  operations: fc
    .tuple(
      fc.tuple(...OPERATIONS.map((what) => operation(fc.constant(what)))),
      fc.array(operation(fc.constantFrom(...OPERATIONS)), { maxLength: 12 }),
    )
    .map(([each, others]) => [...each, ...others]),
  seed: fc.integer(),
});

/** Everybody at once, each in turns of random length; afterwards everything goes on until nothing is left. */
async function live(world: World, { publications, operations }: Script): Promise<void> {
  const { dice } = world;
  let over = false;
  const untilOver = async (turn: () => Promise<unknown>) => {
    while (!over) {
      await turn();
      await sleep(dice() * 4);
    }
  };
  const workers = [
    untilOver(() => loopTurn(world)),
    untilOver(() => loopTurn(world)),
    untilOver(() => workflowTurn(world)),
    untilOver(() => sweepTurn(world)),
    untilOver(() => (dice() < 0.3 ? releaseOne(world) : applyScopes(world))),
    untilOver(() => queuePages(world)),
  ];
  const publishing = publications.map(async (publication, n) => {
    await sleep(n * 6 + dice() * 6);
    await publish(world, publication);
  });
  const operating = operations.map(async (operation) => {
    await sleep(dice() * publications.length * 7);
    await operate(world, operation);
  });
  await Promise.all([...publishing, ...operating]).finally(() => {
    over = true;
  });
  await Promise.all([...workers, ...world.background]);
  await drain(world);
}

async function drain(world: World): Promise<void> {
  world.receivers.heal();
  for (let turn = 1; turn <= MAX_TURNS; turn += 1) {
    await resumeAll(world);
    await Promise.all([loopTurn(world), workflowTurn(world), sweepTurn(world)]);
    if ((await query(world.database, 'select 1 from delivery_queue limit 1')).length === 0) return;
    await sleep(3);
  }
}

async function withEndpoints(count: number) {
  const { database } = await seededWorkerDatabase(24);
  const endpoints: string[] = [];
  for (let n = 0; n < count; n += 1) {
    endpoints.push((await addEndpoint(database, '900000000000101', `https://e${n}.example`)).id);
  }
  return { database, endpoints };
}

describe('the queue', () => {
  test('loses nothing, keeps the order of each lane and sends one at a time, whatever publishers, workers and operators do', {
    timeout: 120_000 + RUNS * 20_000,
  }, async () => {
    const { database } = await seededWorkerDatabase(30);
    await noteMoves(database);
    const moves = new Set<string>();
    const run = async (script: Script): Promise<void> => {
      const world = await makeWorld(database, seededDice(script.seed));
      await live(world, script);
      expect(await judge(world)).toEqual([]);
      const { unknown, seen } = await checkMoves(world);
      expect(unknown).toEqual([]);
      for (const move of seen) moves.add(move);
    };
    await fc.assert(fc.asyncProperty(scripts, run), {
      numRuns: RUNS,
      endOnFailure: true,
      ...(SEED !== undefined && { seed: Number(SEED) }),
    });
    expect(ALL_MOVES.filter((move) => !moves.has(move))).toEqual([]);
  });

  test('of an endpoint that is not open nothing is claimed, and everything once it is', async () => {
    const { database, endpoints } = await withEndpoints(2);
    const [off = '', on = ''] = endpoints;
    await database.raw(`update endpoint_health set mode = 'paused' where endpoint_id = :off`, { off });
    const rows = [newRow(off, 'a'), newRow(off, 'b'), newRow(on, 'a')];
    await database.transaction((trx) => enqueueDeliveries(trx, rows));
    expect((await claimAll(database)).deliveries.map((row) => row.endpointId)).toEqual([on]);
    await database.raw(`update endpoint_health set mode = 'open' where endpoint_id = :off`, { off });
    expect((await claimAll(database)).deliveries).toHaveLength(2);
  });

  test('what stands behind an attempt of a replay that was paused meanwhile waits for the replay', async () => {
    const { database, endpoints } = await withEndpoints(1);
    const rows = [0, 1].map(() => ({ ...newRow(endpoints[0] ?? '', 'replay/1/a'), replay: true }));
    await database.transaction((trx) => enqueueDeliveries(trx, rows));
    const { deliveries, token } = await claimAll(database);
    // A pause leaves alone what is being attempted.
    await execute(database, `update delivery_queue set released = false where state = 'queued'`);
    expect(await settleAndFollow(database, deliveries, token)).toEqual([]);
    const left = await query(database, 'select delivery_id as id, state from delivery_queue');
    expect(left).toEqual([{ id: rows[1]?.deliveryId, state: 'suspended' }]);
  });

  test('one endpoint never takes more than its share of a claim', async () => {
    const { database, endpoints } = await withEndpoints(2);
    const [busy = '', calm = ''] = endpoints;
    const rows = Array.from({ length: 100 }, (_, n) => newRow(busy, `lane ${n}`));
    await database.transaction((trx) => enqueueDeliveries(trx, [...rows, newRow(calm, 'a')]));
    const { deliveries: taken } = await claimAll(database, { share: 5 });
    expect(taken.filter((row) => row.endpointId === busy)).toHaveLength(5);
    expect(taken.filter((row) => row.endpointId === calm)).toHaveLength(1);
  });

  test('endpoints are served in turn: one with a low id cannot starve one with a high id', async () => {
    const { database, endpoints } = await withEndpoints(3);
    const rows = endpoints.flatMap((id) => Array.from({ length: 6 }, (_, n) => newRow(id, `lane ${n}`)));
    await database.transaction((trx) => enqueueDeliveries(trx, rows));
    const limit = 2;
    const due = new DueFinder({ database, limiter: new EndpointLimiter() });
    const served: string[] = [];
    for (let turn = 0; turn < 4; turn += 1) {
      const shares = await due.find(limit);
      const claim = { shares, limit, token: randomUUID(), leaseMs: 60_000 };
      const taken = await claimDue(database, claim);
      due.took(shares, taken, limit);
      served.push(...new Set(taken.map((row) => row.endpointId)));
      await database.raw('delete from delivery_queue where delivery_id = any (:deliveryIds)', {
        deliveryIds: taken.map((row) => row.deliveryId),
      });
    }
    const [a, b, c] = endpoints;
    expect(served).toEqual([a, b, c, a]);
  });
});
