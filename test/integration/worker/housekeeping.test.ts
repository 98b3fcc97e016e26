import pg from 'pg';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { deleteEndpoint } from '../../../src/features/endpoints/endpoint-modes.ts';
import { applyRetention, dropDay } from '../../../src/ops/erasures/retention/expired-days.ts';
import { listNeededIds } from '../../../src/ops/erasures/retention/needed-rows.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import type { Database, DatabasePool } from '../../../src/platform/postgres/database.ts';
import { DAILY_TABLES } from '../../../src/platform/postgres/partitions.ts';
import { readClockSkewMs } from '../../../src/platform/postgres/server-checks.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { listHousekeepingSteps } from '../../../src/platform/postgres/worker-processes.ts';
import { housekeepingSteps, runStep, startHousekeeping } from '../../../src/worker/housekeeping.ts';
import { readSystemFigures } from '../../../src/worker/metrics/system-figures.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { takeIn } from '../../support/take-in.ts';
import { addEndpoint, seedFixtureAccounts } from '../../support/test-accounts.ts';
import { createTestDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { fixtureBody } from '../../support/upstream-fixtures.ts';
import { startWorkerProcess } from '../../support/worker-process.ts';

const WABA = '900000000000101';
const LONG_AGO = `((now() at time zone 'utc')::date - 100)`;

let database: DatabasePool;

beforeEach(async () => {
  const store = await createTestDatabase();
  database = store.database;
  return store.close;
});

afterEach(() => {
  vi.useRealTimers();
});

function toolsOf(given: Database = database) {
  return {
    database: given,
    logger: silentLogger,
    objectStore: { remove: async () => 0 },
    retentionDays: { inbox: 14, events: 90, attempts: 30 },
  };
}

async function run(name: string): Promise<void> {
  const step = housekeepingSteps(toolsOf()).find((known) => known.name === name);
  if (step === undefined) throw new Error(`no step ${name}`);
  await step.run(new AbortController().signal);
}

describe('steps of housekeeping', () => {
  test('go on their own: one that fails is shown and stops no other', async () => {
    const logged: unknown[] = [];
    const logger = { ...silentLogger, warn: (...given: unknown[]) => logged.push(given) };
    const tools = { ...toolsOf(), logger: logger as typeof silentLogger };
    await database.raw('alter table dedup_keys rename to away');
    for (const step of housekeepingSteps(tools)) expect(await runStep(tools, step)).toBe(true);
    const steps = await listHousekeepingSteps(database);
    expect(steps.filter(({ failingSince }) => failingSince !== null).map(({ step }) => step)).toEqual([
      'deduplication keys',
    ]);
    expect(steps.filter(({ succeededAt }) => succeededAt !== null)).toHaveLength(steps.length - 1);
    expect(steps.find(({ error }) => error !== null)?.error).toContain('dedup_keys');
    expect(logged).toHaveLength(1);
    await execute(
      database,
      `update housekeeping_steps set failing_since = now() - interval '90 seconds'
                              where failing_since is not null`,
    );
    const { housekeepingFailingSeconds: failing } = (await readSystemFigures(database, 2_000)).figures;
    expect(failing?.['deduplication keys']).toBeGreaterThan(80);
    expect(failing?.retention).toBe(0);
  });

  test('are done by one process per hour, again sooner after a failure, and are shown as working when they do', async () => {
    let failing = true;
    let runs = 0;
    const step = {
      name: 'some',
      run: async () => {
        runs += 1;
        if (failing) throw new Error('not today');
      },
    };
    const both = () => Promise.all([runStep(toolsOf(), step), runStep(toolsOf(), step)]);
    expect((await both()).toSorted()).toEqual([false, true]);
    const waitOf = async () =>
      await query<{ minutes: number }>(
        database,
        `select round(extract(epoch from next_at - now()) / 60)::integer as minutes from housekeeping_steps`,
      );
    expect(await waitOf()).toEqual([{ minutes: 10 }]);
    failing = false;
    await execute(database, 'update housekeeping_steps set next_at = now()');
    expect((await both()).toSorted()).toEqual([false, true]);
    expect(await waitOf()).toEqual([{ minutes: 60 }]);
    expect(runs).toBe(2);
    expect(await listHousekeepingSteps(database)).toMatchObject([{ failingSince: null, error: null }]);
  });

  test('forget old deduplication keys in portions, and no young ones', async () => {
    await addOldKeys();
    const deleted: number[] = [];
    const counting = {
      ...database,
      raw: async (...given: Parameters<Database['raw']>) => {
        const answer = await database.raw(...given);
        deleted.push(answer.rowCount ?? 0);
        return answer;
      },
    };
    await housekeepingSteps(toolsOf(counting))
      .find(({ name }) => name === 'deduplication keys')
      ?.run(new AbortController().signal);
    expect(deleted).toEqual([10_000, 10_000, 5_000]);
    expect(await query(database, 'select 1 from dedup_keys')).toHaveLength(10);
  });

  test('end behind the batch under way when the process is to stop, and are free for another process at once', async () => {
    await addOldKeys();
    const stopped: Promise<void>[] = [];
    const raw: Database['raw'] = async (text, bindings) => {
      if (text.startsWith('delete from dedup_keys')) stopped.push(loop.stop());
      return await database.raw(text, bindings);
    };
    const loop = startHousekeeping(toolsOf({ ...database, raw }));
    await expect.poll(() => stopped.length).toBe(1);
    await stopped[0];
    expect(await query(database, 'select 1 from dedup_keys')).toHaveLength(15_010);
    const steps = await query<{ step: string; error: string | null; isDue: boolean }>(
      database,
      'select step, error, next_at <= clock_timestamp() as "isDue" from housekeeping_steps',
    );
    expect(steps).toContainEqual({ step: 'deduplication keys', error: null, isDue: true });
    expect(steps.map(({ step }) => step)).not.toContain('audit anchor');
  });

  test('that take too long are cut off before another process may begin them, and go on soon', async () => {
    const timeout = vi.spyOn(AbortSignal, 'timeout').mockReturnValue(AbortSignal.abort());
    onTestFinished(() => timeout.mockRestore());
    await addOldKeys();
    let heldMinutes = 0;
    const [step] = housekeepingSteps(toolsOf()).filter(({ name }) => name === 'deduplication keys');
    if (step === undefined) throw new Error('no step');
    const run = async (ending: AbortSignal) => {
      heldMinutes = await minutesLeft();
      await step.run(ending);
    };
    await runStep(toolsOf(), { ...step, run });
    expect(timeout.mock.calls).toEqual([[expect.any(Number)]]);
    expect(Number(timeout.mock.calls[0]?.[0]) / 60_000).toBeLessThanOrEqual(heldMinutes / 2);
    expect(await query(database, 'select 1 from dedup_keys')).toHaveLength(25_010);
    expect(await minutesLeft()).toBe(10);
  });
});

async function minutesLeft(): Promise<number> {
  const [row] = await query<{ minutes: number }>(
    database,
    'select round(extract(epoch from next_at - now()) / 60)::integer as minutes from housekeeping_steps',
  );
  return row?.minutes ?? 0;
}

/** 25,000 that are due to go, and ten that are not. */
async function addOldKeys(): Promise<void> {
  await execute(
    database,
    `insert into dedup_keys (key, first_seen_at)
     select cast('key ' || n as bytea), now() - case when n <= 25000 then 15 else 13 end * interval '1 day'
       from generate_series(1, 25010) as n`,
  );
}

/** A statement waits for ten seconds for each of them at most, and a worker takes longer to be ready. */
const LOCKED = ['idempotency_keys', 'send_pacing', 'media_uploads', 'user_sessions', 'user_notices'];

describe('a worker that is told to stop', () => {
  test('while a step of housekeeping waits for a lock ends within its drain time, with exit code 0', async () => {
    const { url } = database.options;
    const holder = new pg.Client({ connectionString: url });
    await holder.connect();
    // The database is dropped beneath it if the test fails.
    holder.on('error', () => undefined);
    await holder.query(`begin; lock table ${LOCKED.join(', ')}`);
    const worker = startWorkerProcess(testSettings(url, { HELIOGRAPH_WORKER_DRAIN_TIMEOUT_MS: '8000' }));
    onTestFinished(() => worker.kill());
    await worker.ready();
    const waiting = `select 1 from pg_locks where not granted
                        and relation = any (cast(:tables as regclass[]))
                        and database = (select oid from pg_database where datname = current_database())`;
    const isHeldUp = async () =>
      (await query(database, waiting, { tables: `{${LOCKED.join()}}` })).length > 0;
    await expect.poll(isHeldUp).toBe(true);
    await worker.stop();
    await holder.end();
    expect(worker.child.exitCode, worker.output()).toBe(0);
    expect(worker.output()).not.toContain('"level":50');
  });
});

describe('an endpoint whose removal was cut off', () => {
  test('has what was left in the queue dropped by housekeeping', async () => {
    await seedFixtureAccounts(database);
    const gone = await addEndpoint(database, WABA, 'https://gone.example/hook');
    const kept = await addEndpoint(database, WABA, 'https://kept.example/hook');
    await takeIn(database, fixtureBody('in_text'), fixtureBody('in_sticker_static'));
    await execute(
      database,
      `update delivery_queue set state = 'claimed', token = gen_random_uuid(), lease_until = now() + interval '1 hour'
        where endpoint_id = :id and state = 'due'`,
      { id: gone.id },
    );
    await expect(
      deleteEndpoint({ database: dyingAfterDelete(gone.id), actor: SYSTEM }, WABA, gone.id),
    ).rejects.toThrow('killed');
    const left = () =>
      query<{ id: string }>(database, 'select distinct endpoint_id as id from delivery_queue order by 1');
    expect((await left()).map(({ id }) => id)).toEqual([gone.id, kept.id]);
    await run('deleted endpoints');
    expect((await left()).map(({ id }) => id)).toEqual([kept.id]);
    const states = await query(
      database,
      'select distinct state, last_error as error from deliveries where endpoint_id = :id',
      { id: gone.id },
    );
    expect(states).toEqual([{ state: 'dropped', error: 'dropped: the endpoint was deleted' }]);
  });
});

/** A database that is gone for the caller as soon as the endpoint is, as when its process is killed then. */
function dyingAfterDelete(endpointId: string): Database {
  let isDead = false;
  const check = () => {
    if (isDead) throw new Error('killed');
  };
  return {
    raw: async (...given) => {
      check();
      return await database.raw(...given);
    },
    transaction: async (work) => {
      check();
      const result = await database.transaction(work);
      const rows = await query(database, 'select 1 from webhook_endpoints where id = :endpointId', {
        endpointId,
      });
      isDead = rows.length === 0;
      return result;
    },
    notify: database.notify,
  };
}

describe('rows that are still needed', () => {
  test('are found wherever in the queue they are, however long it is', async () => {
    await execute(
      database,
      `insert into delivery_queue (endpoint_id, lane, state, released, delivery_day, delivery_id, event_day, event_uuid)
       select 1, 'lane ' || n, 'due', true, current_date, gen_random_uuid(),
              case when n = 20001 then ${LONG_AGO} else current_date end, gen_random_uuid()
         from generate_series(1, 20001) as n`,
    );
    const [row] = await query<{ day: string; before: string }>(
      database,
      `select ${LONG_AGO} as day, ${LONG_AGO} - 1 as before`,
    );
    const { day = '', before = '' } = row ?? {};
    const [needed] = await query<{ id: string }>(
      database,
      `select event_uuid as id from delivery_queue where event_day < current_date`,
    );
    expect(await listNeededIds(database, 'events', [before, day])).toEqual(new Map([[day, [needed?.id]]]));
    expect(await listNeededIds(database, 'deliveries', [before, day])).toEqual(new Map());
  });

  test('of bodies are looked up again before they are dropped: a retry puts some back', async () => {
    const [row] = await query<{ day: string }>(database, `select ${LONG_AGO} as day`);
    const { day = '' } = row ?? {};
    await query(database, `select ensure_partitions(cast(:day as date), cast(:day as date))`, { day });
    await execute(database, `insert into inbox (received_day, body, state) values (:day, '{}', 'new')`, {
      day,
    });
    await execute(database, `insert into inbox (received_day, body, state) values (:day, '{}', 'done')`, {
      day,
    });
    expect(await dropDay(database, 'inbox', day)).toBe('dropped');
    expect(await query(database, 'select state from inbox')).toEqual([{ state: 'new' }]);
  });

  test('in default partitions are kept, and what is past its time is deleted there', async () => {
    await execute(
      database,
      `insert into inbox (received_day, body, state)
       values (${LONG_AGO}, '{}', 'done'), (${LONG_AGO} - 1, '{}', 'failed'), (current_date + 30, '{}', 'done')`,
    );
    await execute(
      database,
      `insert into attempts (day, delivery_id, attempt, waba_id, endpoint_id, started_at, duration_ms, reused, url,
                             user_agent, worker)
       values (${LONG_AGO}, gen_random_uuid(), 1, '1', 1, now(), 1, false, 'u', 'a', 'w')`,
    );
    await applyRetention(toolsOf(), { inbox: 14, events: 90, attempts: 30 });
    const counts = await Promise.all(
      DAILY_TABLES.map((table) => query(database, `select 1 from ${table}_default`)),
    );
    expect(counts.map(({ length }) => length)).toEqual([2, 0, 0, 0]);
  });
});

describe('the clock of a process', () => {
  test('is compared with that of the database', async () => {
    expect(await readClockSkewMs(database)).toBe(0);
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3_600_000 });
    expect(await readClockSkewMs(database)).toBeLessThan(-3_500_000);
    vi.setSystemTime(Date.now() - 7_200_000);
    expect(await readClockSkewMs(database)).toBeGreaterThan(3_500_000);
  });
});
