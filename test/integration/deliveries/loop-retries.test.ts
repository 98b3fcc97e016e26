import { describe, expect, onTestFinished, test } from 'vitest';
import { startRetryRelease } from '../../../src/engine/deliveries/dispatch/queue-upkeep.ts';
import { type AttemptMade, judgeOutcome } from '../../../src/engine/deliveries/judge-outcome.ts';
import { findRunRoom } from '../../../src/engine/queue/settle.ts';
import { findLate, releaseDueRetries } from '../../../src/engine/queue/sweep.ts';
import { insertTestEvent } from '../../../src/features/endpoints/test-event.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { idleLoop } from '../../support/idle-loop.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { seededWorkerDatabase } from '../../support/test-database.ts';
import { eventually } from '../../support/webhook-receiver.ts';
import { response } from '../../unit/deliveries/send-results.ts';
import { age, letBuffer, write } from './buffer-fixtures.ts';

const WABA = '900000000000101';
const SECOND_WABA = '900000000000202';
const LIMITS = { perEndpoint: 3, overall: 8 };
const EVERYTHING = { withinSeconds: 86_400, runGraceMs: 3_000, limit: 50 };

/** Retries that are due in so many seconds each. */
async function addRetries(
  database: Database,
  endpointId: string,
  { run = null, dueInSeconds }: { run?: 'room' | 'extra' | null; dueInSeconds: readonly number[] },
) {
  await database.raw(
    `insert into delivery_queue (endpoint_id, lane, state, released, delivery_day, delivery_id, event_day, event_uuid,
                                 attempts, run, next_attempt_at)
     select ${endpointId}, gen_random_uuid(), 'retrying', true, current_date, gen_random_uuid(), current_date,
            gen_random_uuid(), 1, ${run === null ? 'null' : `'${run}'`}, now() + s * interval '1 second'
       from unnest(array[${dueInSeconds.join(',')}]) as s`,
  );
}

const statesOf = async (database: Database) =>
  (await query<{ state: string }>(database, 'select state from delivery_queue order by position')).map(
    ({ state }) => state,
  );

describe('retries', () => {
  test('become due at their time, the oldest first', async () => {
    const { database } = await seededWorkerDatabase();
    const { id } = await addEndpoint(database, WABA, 'https://a.example');
    await addRetries(database, id, { dueInSeconds: [-1, -3, -2, 60] });
    expect(await releaseDueRetries(database, { ...EVERYTHING, limit: 2 })).toBe(2);
    expect(await statesOf(database)).toEqual(['retrying', 'due', 'due', 'retrying']);
    expect(await releaseDueRetries(database, EVERYTHING)).toBe(1);
    expect(await releaseDueRetries(database, EVERYTHING)).toBe(0);
  });

  test('that a run shows are left to it for a moment, and to nobody while Temporal is away', async () => {
    const { database } = await seededWorkerDatabase();
    const { id } = await addEndpoint(database, WABA, 'https://a.example');
    await addRetries(database, id, { run: 'room', dueInSeconds: [-1, -4, 60] });
    expect(await releaseDueRetries(database, EVERYTHING)).toBe(1);
    expect(await statesOf(database)).toEqual(['retrying', 'due', 'retrying']);
    expect(await releaseDueRetries(database, { ...EVERYTHING, runGraceMs: 0 })).toBe(1);
    expect(await statesOf(database)).toEqual(['due', 'due', 'retrying']);
  });

  test('do not include test events, which go to an endpoint in any mode: they are found by themselves', async () => {
    const { database } = await seededWorkerDatabase();
    const { id } = await addEndpoint(database, WABA, 'https://a.example');
    await addRetries(database, id, { run: 'extra', dueInSeconds: [-4, -1] });
    await database.raw('update delivery_queue set attempts = 0');
    expect(await releaseDueRetries(database, EVERYTHING)).toBe(0);
    expect((await findLate(database, { runGraceMs: 3_000, limit: 10 })).tests).toHaveLength(1);
    expect((await findLate(database, { runGraceMs: 0, limit: 10 })).tests).toHaveLength(2);
  });
});

test('a test event at a receiver that hangs keeps no retry of others waiting', async () => {
  const { database } = await seededWorkerDatabase();
  const hanging = await addEndpoint(database, WABA, 'https://hangs.example');
  const other = await addEndpoint(database, SECOND_WABA, 'https://other.example');
  const responds = Promise.withResolvers<ReturnType<typeof response>>();
  const sent: string[] = [];
  const sender = {
    send: async ({ url }: { url: string }) => {
      sent.push(url);
      return await responds.promise;
    },
    close: async () => undefined,
  };
  const { loop } = idleLoop({ database, sender });
  const tools = { database, logger: silentLogger, loop, blockLimitHours: 0, isLeader: () => true };
  const release = startRetryRelease({ ...tools, isTemporalUp: () => false });
  onTestFinished(async () => {
    responds.resolve(response(200));
    await release.stop();
    await loop.drained();
  });
  const tenant = { id: '1', businessName: 'A' };
  await insertTestEvent(database, WABA, { endpoint: { ...hanging, url: 'https://hangs.example' }, tenant });
  await eventually('the test event is under way', () => sent, { is: ['https://hangs.example'] });
  await addRetries(database, other.id, { dueInSeconds: [-1] });
  await eventually('the retry of the other is released', () => statesOf(database), {
    is: ['claimed', 'due'],
  });
});

test('a look for what is late is two statements while nothing waits, and sees to buffered heads besides', async () => {
  const { database } = await seededWorkerDatabase();
  const texts: string[] = [];
  const counting: Database = {
    ...database,
    raw: async (text, bindings) => {
      texts.push(text);
      return await database.raw(text, bindings);
    },
    transaction: async (work) => {
      texts.push('transaction');
      return await database.transaction(work);
    },
  };
  const { loop } = idleLoop({
    database,
    sender: { send: async () => response(200), close: async () => undefined },
  });
  const tools = { database: counting, logger: silentLogger, loop, blockLimitHours: 0, isLeader: () => true };
  const release = startRetryRelease({ ...tools, isTemporalUp: () => false });
  onTestFinished(() => release.stop());
  await eventually('it has looked five times', () => texts.length >= 10);
  const looks = texts.slice(0, 10);
  expect([
    ...new Set(looks.filter((_, n) => n % 2 === 0)),
    ...new Set(looks.filter((_, n) => n % 2 === 1)),
  ]).toEqual([expect.stringContaining("set state = 'due'"), expect.stringContaining('attempts = 0')]);
  const { id } = await addEndpoint(database, WABA, 'https://bot.example');
  await letBuffer(database, id);
  await write(database, { id: 'wamid.1' });
  await age(database, 120);
  await eventually('the buffered message is due', () => statesOf(database), { is: ['due'] });
});

test('the room for runs is counted by endpoint, by tenant and overall, without those beside the limits', async () => {
  const { database } = await seededWorkerDatabase();
  const tenants = await query<{ waba: string; tenant: string }>(
    database,
    'select waba_id as waba, tenant_id as tenant from wabas',
  );
  const tenantOf = new Map(tenants.map(({ waba, tenant }) => [waba, tenant]));
  expect(tenantOf.get(WABA)).not.toBe(tenantOf.get(SECOND_WABA));
  const { id: first } = await addEndpoint(database, WABA, 'https://a.example');
  const { id: second } = await addEndpoint(database, WABA, 'https://b.example');
  const { id: other } = await addEndpoint(database, SECOND_WABA, 'https://c.example');
  await addRetries(database, first, { run: 'room', dueInSeconds: [60, 61, 62, 63, 64] });
  await addRetries(database, second, { run: 'room', dueInSeconds: [60] });
  await addRetries(database, second, { run: 'extra', dueInSeconds: [60, 61] });
  await addRetries(database, second, { dueInSeconds: [62] });
  // What waits for its endpoint still counts.
  await database.raw(`update delivery_queue set state = 'due' where endpoint_id = ${first}`);
  const room = await database.transaction((trx) => findRunRoom(trx, [first, second, other], LIMITS));
  const counts = (id: string) => {
    const { freeRuns, openRunsOfTenant, openRunsOverall } = room.get(id) ?? {};
    return [freeRuns, openRunsOfTenant, openRunsOverall];
  };
  expect(counts(first)).toEqual([0, 6, 6]);
  expect(counts(second)).toEqual([2, 6, 6]);
  expect(counts(other)).toEqual([3, 0, 6]);
});

test('endpoints of a tenant share the room for runs, and never take what other tenants must have left', async () => {
  const { database } = await seededWorkerDatabase();
  const { id: first } = await addEndpoint(database, WABA, 'https://a.example');
  const { id: second } = await addEndpoint(database, WABA, 'https://b.example');
  const { id: other } = await addEndpoint(database, SECOND_WABA, 'https://c.example');
  const starts: boolean[] = [];
  const limits = { ...LIMITS, takeStart: (isFirst: boolean) => starts.push(isFirst) > 0 };
  const runOf = async (id: string) => {
    const rooms = await database.transaction((trx) => findRunRoom(trx, [id], limits));
    const room = rooms.get(id);
    if (room === undefined) throw new Error('the endpoint is gone');
    const outcome = judgeOutcome(madeFailure, room, limits);
    const run = outcome.state === 'retrying' ? outcome.run : null;
    if (run !== null) await addRetries(database, id, { run, dueInSeconds: [60] });
    return run;
  };
  const runs: (string | null)[] = [];
  for (let n = 0; n < 4; n += 1) runs.push(await runOf(first));
  expect(runs).toEqual(['room', 'room', 'room', null]);
  expect([await runOf(second), await runOf(second)]).toEqual(['room', null]);
  expect(await runOf(other)).toBe('room');
  expect(starts).toEqual([true, false, false, false, true]);
});

const madeFailure: AttemptMade = {
  eventType: 'message',
  attempt: 2,
  probes: 0,
  isProbe: false,
  hasRun: false,
  isCalm: false,
  retryScheduleMs: [60_000, 60_000],
  scheduledInMs: null,
  result: response(500),
};
