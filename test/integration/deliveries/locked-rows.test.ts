import { expect, onTestFinished, test } from 'vitest';
import type { MadeAttempt } from '../../../src/engine/deliveries/attempt/made-attempt.ts';
import {
  type SettlementTools,
  settleAttempts,
  settleRefused,
} from '../../../src/engine/deliveries/attempt/settle-attempts.ts';
import { makeEndpointHealth } from '../../../src/engine/deliveries/breaker.ts';
import type { RunLimits } from '../../../src/engine/deliveries/judge-outcome.ts';
import { type Recorded, ResultRecorder } from '../../../src/engine/deliveries/loop/result-recorder.ts';
import { releaseEvent } from '../../../src/engine/queue/enqueue.ts';
import { queueReplayPage } from '../../../src/features/replays/replay-steps.ts';
import { startReplay, switchReplay } from '../../../src/features/replays/replays.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { claimAll } from '../../support/due-shares.ts';
import { holdRows } from '../../support/held-rows.ts';
import { ACCOUNT, bodyOf, textMessage } from '../../support/load/upstream-bodies.ts';
import { deliverHeads } from '../../support/settle-rows.ts';
import { takeIn } from '../../support/take-in.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { seededWorkerDatabase } from '../../support/test-database.ts';
import { eventually } from '../../support/webhook-receiver.ts';
import { madeAttempt } from '../../unit/deliveries/made-attempts.ts';
import { response } from '../../unit/deliveries/send-results.ts';
import { publish, queuedStates, settleLive } from '../replays/replay-fixtures.ts';

const WABA = '900000000000101';

/** Attempts that got these status codes, one lane each, under leases that are in force. */
async function attemptsWith(database: Database, statusCodes: readonly number[]): Promise<MadeAttempt[]> {
  const url = 'https://tenant.example/hook';
  const { id } = await addEndpoint(database, WABA, url);
  const messages = statusCodes.map((_, n) => textMessage(`wamid.LOCKED${n}`, 'hello'));
  await takeIn(database, ...messages.map((message) => bodyOf(ACCOUNT, [message])));
  const { deliveries, token } = await claimAll(database);
  return deliveries.map(({ deliveryId, deliveryDay }, n) => {
    const attempt = madeAttempt(response(statusCodes[n] ?? 200));
    const endpoint = { ...attempt.endpoint, id, url, wabaId: WABA, retryScheduleMs: [60_000] };
    return {
      ...attempt,
      deliveryId,
      deliveryDay,
      token,
      endpoint,
    };
  });
}

const NO_RUNS: RunLimits = {
  perEndpoint: 20,
  overall: 200,
  mayStart: () => false,
  takeStart: () => false,
};

function recorderOf(database: Database, runLimits: RunLimits = NO_RUNS) {
  const recorded: Recorded['outcomes'] = [];
  const seen: string[] = [];
  const held = new Set<string>();
  const tools: SettlementTools = {
    database,
    health: makeEndpointHealth(),
    worker: 'test',
    onAttempt: ({ deliveryId }) => void seen.push(deliveryId),
    runLimits,
    gate: { isOpen: () => true, check: async () => true },
    onTrouble: () => undefined,
  };
  const recorder = new ResultRecorder(tools, {
    giveUpMs: 60_000,
    followerClaims: () => null,
    isSlotWanted: () => false,
    onRecorded: ({ outcomes }) => void recorded.push(...outcomes),
    onHeld: (attempts) => {
      for (const { deliveryId } of attempts) held.add(deliveryId);
    },
  });
  return { tools, recorder, recorded, seen, held };
}

/** Holds the row of a delivery as a transaction of intake or of a replay does, until `release`. */
const holdRow = (database: Database, deliveryId: string) =>
  holdRows(
    database,
    'select 1 from delivery_queue where delivery_id = cast(:deliveryId as uuid) for update',
    { deliveryId },
  );

test.each([
  ['successes', [200, 200, 200]],
  ['failures', [500, 500, 500]],
])('a row that another transaction holds does not delay the %s of other lanes', async (_, codes) => {
  const { database } = await seededWorkerDatabase();
  const [first, ...others] = await attemptsWith(database, codes);
  if (first === undefined) throw new Error('nothing was claimed');
  const { recorder, recorded, seen } = recorderOf(database);
  const { release } = await holdRow(database, first.deliveryId);
  onTestFinished(release);
  for (const attempt of [first, ...others]) recorder.add(attempt);
  await eventually('the others are recorded', async () => recorded.length === others.length);
  expect(recorded.map(({ attempt }) => attempt.deliveryId).sort()).toEqual(
    others.map(({ deliveryId }) => deliveryId).sort(),
  );
  await release();
  await eventually('the first is recorded', async () => recorded.length === codes.length);
  const state = codes[0] === 200 ? 'delivered' : 'retrying';
  expect(recorded.map(({ outcome }) => outcome?.state)).toEqual(codes.map(() => state));
  // Each counts once, however often its recording was tried.
  expect(seen.toSorted()).toEqual([first, ...others].map(({ deliveryId }) => deliveryId).sort());
  const [logged] = await query<{ n: number }>(database, 'select count(*)::integer as n from attempts');
  expect(logged?.n).toBe(codes.length);
});

test('a failure uses up one start of a run, however often its recording is tried', async () => {
  const { database } = await seededWorkerDatabase();
  const [first, other] = await attemptsWith(database, [500, 500]);
  if (first === undefined || other === undefined) throw new Error('nothing was claimed');
  let starts = 2;
  const runLimits = {
    perEndpoint: 20,
    overall: 200,
    mayStart: () => starts > 0,
    takeStart: () => {
      starts -= 1;
      return starts >= 0;
    },
  };
  const { recorder, recorded, held } = recorderOf(database, runLimits);
  const { release } = await holdRow(database, first.deliveryId);
  onTestFinished(release);
  recorder.add(first);
  recorder.add(other);
  await eventually('the other is recorded', () => recorded.length, { is: 1 });
  await eventually('the first was tried again and again', () => held.has(first.deliveryId));
  await release();
  await eventually('the first is recorded', () => recorded.length, { is: 2 });
  expect(starts).toBe(0);
  expect(recorded.map(({ outcome }) => outcome)).toMatchObject([{ run: 'room' }, { run: 'room' }]);
});

test('what the database refuses of an attempt whose row is held is left out at each try, and the attempt counts once', async () => {
  const { database } = await seededWorkerDatabase();
  const [attempt] = await attemptsWith(database, [500]);
  if (attempt === undefined) throw new Error('nothing was claimed');
  const { tools } = recorderOf(database);
  const { release } = await holdRow(database, attempt.deliveryId);
  onTestFinished(release);
  const tries = [
    () => settleAttempts(tools, [attempt]),
    () => settleRefused(tools, attempt, new Error('refused')),
    () => settleRefused(tools, attempt, new Error('refused')),
  ];
  for (const settleIt of tries) {
    const { locked } = await settleIt();
    expect(locked).toHaveLength(1);
    expect(locked[0]).toBe(attempt);
  }
  expect(tools.health.drain()).toMatchObject([{ failures: 1 }]);
});

test('failures and successes are recorded while another transaction holds the settings of their endpoint', async () => {
  const { database } = await seededWorkerDatabase();
  const attempts = await attemptsWith(database, [503, 200, 200]);
  const [failure] = attempts;
  if (failure === undefined) throw new Error('nothing was claimed');
  const { recorder, recorded } = recorderOf(database);
  const { release } = await holdRows(database, 'select 1 from webhook_endpoints where id = :id for update', {
    id: failure.endpoint.id,
  });
  onTestFinished(release);
  for (const attempt of attempts) recorder.add(attempt);
  await eventually('all are recorded', () => recorded.length, { is: 3, withinMs: 9_000 });
  expect(recorded.map(({ outcome }) => outcome?.state).toSorted()).toEqual([
    'delivered',
    'delivered',
    'retrying',
  ]);
});

test('the release of an event that waits behind an attempt delays no other lane', async () => {
  const { database } = await seededWorkerDatabase();
  const [first, second] = await attemptsWith(database, [200, 200]);
  if (first === undefined || second === undefined) throw new Error('nothing was claimed');
  const [behind] = await query<{ uuid: string }>(
    database,
    `insert into delivery_queue (endpoint_id, lane, state, released, delivery_day, delivery_id, event_day, event_uuid)
     select endpoint_id, lane, 'queued', false, delivery_day, gen_random_uuid(), event_day, gen_random_uuid()
       from delivery_queue where delivery_id = :deliveryId returning event_uuid as uuid`,
    { deliveryId: first.deliveryId },
  );
  const { recorder, recorded } = recorderOf(database);
  await database.transaction(async (trx) => {
    await releaseEvent(trx, behind?.uuid ?? '');
    recorder.add(first);
    recorder.add(second);
    await eventually('the other lane is recorded', async () => recorded.length, { is: 1, withinMs: 9_000 });
  });
  expect(recorded[0]?.attempt).toBe(second);
  await eventually('the first is recorded', async () => recorded.length, { is: 2 });
  expect(await query(database, 'select state from delivery_queue')).toEqual([{ state: 'due' }]);
});

test('a release whose event becomes a head while it waits does not lock out others that lock the heads of those lanes', async () => {
  const { database } = await seededWorkerDatabase();
  const [first, second] = await attemptsWith(database, [200, 200]);
  if (first === undefined || second === undefined) throw new Error('nothing was claimed');
  const heads = [first.deliveryId, second.deliveryId];
  const [behind] = await query<{ uuid: string }>(
    database,
    `with behind as (
       insert into delivery_queue (endpoint_id, lane, state, released, delivery_day, delivery_id, event_day, event_uuid)
       select endpoint_id, lane, 'queued', false, delivery_day, gen_random_uuid(), event_day,
              cast('00000000-0000-4000-8000-00000000000e' as uuid)
         from delivery_queue where delivery_id = any (cast(:heads as uuid[])) returning event_uuid)
     select distinct event_uuid as uuid from behind`,
    { heads },
  );
  // In the order in which all lock them.
  const lanes = await query<{ id: string }>(
    database,
    `select delivery_id as id from delivery_queue where state <> 'queued' order by endpoint_id, lane`,
  );
  const waiting = async (count: number) => {
    const locks = `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    await eventually('it waits', async () => (await query(database, locks)).length === count);
  };
  const last = await holdRow(database, lanes[1]?.id ?? '');
  const work: Promise<unknown>[] = [];
  await database.transaction(async (trx) => {
    await query(trx, 'select 1 from delivery_queue where delivery_id = cast(:id as uuid) for update', {
      id: lanes[0]?.id ?? '',
    });
    work.push(database.transaction((other) => releaseEvent(other, behind?.uuid ?? '')));
    await waiting(1);
    await deliverHeads(trx, [lanes[0]?.id ?? '']);
  });
  // The release waits for the second head now, and the first lane has another head than the one that it waited for.
  await waiting(1);
  const lockBoth = `select 1 from delivery_queue where state <> 'queued' order by endpoint_id, lane for update`;
  work.push(database.transaction((other) => query(other, lockBoth)));
  await waiting(2);
  await last.release();
  await Promise.all(work);
  expect(await query(database, 'select state, released from delivery_queue order by state')).toEqual([
    { state: 'claimed', released: true },
    { state: 'due', released: true },
    { state: 'queued', released: true },
  ]);
});

test('an attempt whose claim another process took over is given up at once', async () => {
  const { database } = await seededWorkerDatabase();
  const [first] = await attemptsWith(database, [200]);
  if (first === undefined) throw new Error('nothing was claimed');
  await database.raw('update delivery_queue set token = gen_random_uuid()');
  const { recorder, recorded } = recorderOf(database);
  recorder.add(first);
  await eventually('it is told', async () => recorded.length, { is: 1 });
  expect(recorded).toMatchObject([{ outcome: null }]);
});

test('a replay is paused, resumed and cancelled in transactions of a thousand deliveries at most', async () => {
  const { database } = await seededWorkerDatabase();
  await addEndpoint(database, WABA, 'https://tenant.example/hook');
  await publish(database, WABA, { count: 2_500, keys: 2_500 });
  await settleLive(database, 'failed');
  const { replayId } = await startReplay({ database, actor: SYSTEM }, WABA, { states: ['failed'] }, 'test');
  const [endpoint] = await query<{ id: string }>(database, 'select id from webhook_endpoints');
  const page = { wabaId: WABA, replayId, endpointId: endpoint?.id ?? '' };
  while (((await queueReplayPage(database, page))?.queuedIds.length ?? 0) > 0);
  expect(await queuedStates(database)).toEqual({ due: 2_500 });

  /** How many rows are in `state` after each transaction of a change, as others see it. */
  const stepsOf = async (action: 'pause' | 'resume' | 'cancel', state: string): Promise<number[]> => {
    const steps: number[] = [];
    const transaction: Database['transaction'] = async (work) => {
      const result = await database.transaction(work);
      steps.push((await queuedStates(database))[state] ?? 0);
      return result;
    };
    const watched: Database = Object.create(database, { transaction: { value: transaction } });
    await switchReplay({ database: watched, actor: SYSTEM }, WABA, replayId, action);
    return steps;
  };
  // The first one writes the state of the replay, and what belongs to that.
  expect(await stepsOf('pause', 'suspended')).toEqual([0, 1_000, 2_000, 2_500]);
  expect(await stepsOf('resume', 'due')).toEqual([0, 1_000, 2_000, 2_500]);
  expect(await stepsOf('cancel', 'due')).toEqual([2_500, 1_500, 500, 0]);
});
