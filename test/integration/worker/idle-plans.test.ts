import { expect, onTestFinished, test } from 'vitest';
import type { QueueState } from '../../../src/engine/queue/states.ts';
import { loadConfig } from '../../../src/platform/config/config.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { startWorker } from '../../../src/worker/start-worker.ts';
import { countingServer, readCounts } from '../../support/counting-server.ts';
import { addEndpoints } from '../../support/many-endpoints.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { seedFixtureAccounts } from '../../support/test-accounts.ts';
import { testSettings } from '../../support/test-settings.ts';
import { eventually } from '../../support/webhook-receiver.ts';

const WABA = '900000000000101';

/** In each state of the queue, at an endpoint for each. Nothing of it can be done before the test has ended. */
const ROWS = 1_000_000;

/**
 * Pages of 8 KiB per call. A walk over all rows of a state touches 3,000 of its index alone; a look at an endpoint in
 * trouble touches 2,050, two for the event of each of the 1,000 rows that it looks at.
 */
const MOST_PAGES = 2_500;

/** SQL of what differs from one state to the next, by the number `n` of the row. */
const STATES: Readonly<Record<QueueState, { columns: string; values: string }>> = {
  queued: { columns: 'lane, released', values: `'one lane', true` },
  // As a look leaves those whose event has no body yet.
  unreleased: { columns: 'lane, released, next_attempt_at', values: `'lane ' || n, false, 'infinity'` },
  suspended: { columns: 'lane, released, replay', values: `'lane ' || n, false, true` },
  due: { columns: 'lane, released, parked', values: `'lane ' || n, true, true` },
  claimed: {
    columns: 'lane, released, attempts, token, lease_until',
    // A lease of over ten minutes counts as one of a clock that was set back, and ends at once.
    values: `'lane ' || n, true, 1, gen_random_uuid(), now() + interval '590 seconds'`,
  },
  retrying: {
    columns: 'lane, released, attempts, next_attempt_at, first_failed_at, blocks',
    values: `'lane ' || n, true, 1, now() + interval '1 hour' + n * interval '1 ms', now(), case when n % 2 = 0 then 'other' end`,
  },
};

/** Indexes are made when all rows are there, which takes a third of the time. */
async function fillQueue(database: Database): Promise<void> {
  const states = Object.entries(STATES);
  const urls = states.map(([state]) => `https://${state}.example`);
  const ids = await addEndpoints(database, WABA, { urls, ratePerSecond: null });
  const indexes = await query<{ name: string; definition: string }>(
    database,
    `select cast(indexrelid as regclass)::text as name, pg_get_indexdef(indexrelid) as definition from pg_index
      where indrelid = cast('delivery_queue' as regclass)
        and not exists (select from pg_constraint where conindid = indexrelid)`,
  );
  for (const { name } of indexes) await database.raw(`drop index ${name}`);
  await Promise.all(
    states.map(([state, { columns, values }], n) =>
      database.raw(
        `insert into delivery_queue (endpoint_id, state, delivery_day, delivery_id, event_day, event_uuid, ${columns})
         select ${ids[n]}, '${state}', current_date, uuidv7(), current_date, uuidv7(), ${values}
           from generate_series(1, ${ROWS}) as n`,
      ),
    ),
  );
  for (const { definition } of indexes) await database.raw(definition);
  await database.raw(
    `update endpoint_health set mode = 'paused', has_parked = true
      where endpoint_id = (select id from webhook_endpoints where url = 'https://due.example')`,
  );
  await database.raw('vacuum analyze');
}

async function countStates(database: Database): Promise<Record<string, number>> {
  const rows = await query<{ state: string; n: number }>(
    database,
    'select state, count(*)::integer as n from delivery_queue group by state',
  );
  return Object.fromEntries(rows.map(({ state, n }) => [state, n]));
}

test('no statement of an idle worker reads more because a million deliveries wait in each state of the queue', {
  timeout: 600_000,
}, async () => {
  const { database, url } = await countingServer(['autovacuum=off', 'max_wal_size=16GB']);
  await seedFixtureAccounts(database);
  await fillQueue(database);
  await query(database, 'select pg_stat_statements_reset()');
  const worker = await startWorker(loadConfig(testSettings(url)), silentLogger);
  onTestFinished(() => worker.stop());
  const releases = async () =>
    (await readCounts(database)).find(({ text }) =>
      /^update delivery_queue set state = \S+ next_attempt_at/.test(text),
    )?.calls ?? 0;
  await eventually('every loop has had a turn', async () => (await releases()) > 60, {
    is: true,
    withinMs: 120_000,
  });
  const counts = await readCounts(database);
  expect(counts.length).toBeGreaterThan(100);
  // A row that a loop could move would make its statement cost what it is worth, and hide what it costs idle.
  expect(await countStates(database)).toEqual(
    Object.fromEntries(Object.keys(STATES).map((state) => [state, ROWS])),
  );
  // All that an idle worker asks is among them, so a loop that is added is checked too.
  expect(counts.filter(({ pages }) => pages > MOST_PAGES)).toEqual([]);
});
