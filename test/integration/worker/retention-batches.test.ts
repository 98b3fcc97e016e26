import { beforeEach, describe, expect, test } from 'vitest';
import { foldOldMinutes, forgetOldChartHours } from '../../../src/engine/endpoint/endpoint-health.ts';
import { forgetOldOrderingKeys } from '../../../src/engine/queue/ordering-keys.ts';
import type { Database, DatabasePool } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { buffersTouched } from '../../support/buffers-touched.ts';
import { createTestDatabase } from '../../support/test-database.ts';

const WABA = '900000000000101';

let database: DatabasePool;

beforeEach(async () => {
  const store = await createTestDatabase();
  ({ database } = store);
  return store.close;
});

describe('minutes of charts', () => {
  const HOUR = `(date_trunc('hour', now()) - interval '3 days')`;

  test('become hours after two days, with the same sums, also those that come late', async () => {
    const add = async (from: number, to: number) =>
      await query(
        database,
        `insert into endpoint_minutes (endpoint_id, minute, successes, failures, failed_deliveries, total_ms)
         select endpoint, ${HOUR} + n * interval '1 minute', 1, 2, 3, 4
           from generate_series(1, 2) as endpoint, generate_series(${from}, ${to}) as n
         on conflict do nothing`,
      );
    const rows = async () =>
      await query(
        database,
        `select endpoint_id as id, minute = ${HOUR} as "isFirst", is_hour as "isHour", successes as s, failures as f,
                failed_deliveries as d, total_ms as ms
           from endpoint_minutes where minute < now() - interval '1 day' order by endpoint_id, minute`,
      );
    const fold = async () => {
      while ((await foldOldMinutes(database, 25)) > 0);
    };
    await add(0, 49);
    await query(
      database,
      `insert into endpoint_minutes (endpoint_id, minute, successes) values (1, date_trunc('minute', now()), 7)`,
    );
    await fold();
    const hour = { isFirst: true, isHour: true };
    expect(await rows()).toEqual(['1', '2'].map((id) => ({ id, ...hour, s: 50, f: 100, d: 150, ms: 200 })));
    await add(50, 59);
    await fold();
    expect(await rows()).toEqual(['1', '2'].map((id) => ({ id, ...hour, s: 60, f: 120, d: 180, ms: 240 })));
    expect(await query(database, 'select successes from endpoint_minutes where not is_hour')).toEqual([
      { successes: 7 },
    ]);
    expect(await forgetOldChartHours(database, 4, 10)).toBe(0);
    expect(await forgetOldChartHours(database, 2, 10)).toBe(2);
  });
});

/** Rows of each round that are old, so far apart that each has a page of its own, and how many a batch takes. */
const OLD = 300;
const BATCH = 100;

describe('a batch reads as few pages once months of other rows lie between the old ones', () => {
  const others = (round: number) => OLD * (round === 1 ? 100 : 400);

  /** How many pages a batch of each round touches, with as many old rows among ever more that stay. */
  async function measure(add: (round: number) => Promise<void>, run: (on: Database) => Promise<number>) {
    const touched: number[] = [];
    for (const round of [1, 2]) {
      await add(round);
      await database.raw('vacuum analyze');
      touched.push(
        await buffersTouched(database, async (explaining) => expect(await run(explaining)).toBe(BATCH)),
      );
      while ((await run(database)) > 0);
      await database.raw('vacuum analyze');
    }
    const [first = 0, second = 0] = touched;
    expect(second, `${first} pages, then ${second}`).toBeLessThanOrEqual(1.5 * first);
  }

  test('of ordering keys', async () => {
    await measure(
      async (round) => {
        await query(
          database,
          `insert into ordering_keys (waba_id, key, last_sequence, used_month)
           select cast(:waba as text), md5(cast(:round as text) || n), 3,
                  date_trunc('month', now() - case when n % (:others / ${OLD}) = 0 and n / (:others / ${OLD}) < ${OLD}
                    then interval '5 months' else n % 2 * interval '1 month' end)
             from generate_series(0, cast(:others as integer)) as n`,
          { waba: WABA, round, others: others(round) },
        );
      },
      (on) => forgetOldOrderingKeys(on, 90, BATCH),
    );
  });

  test('of minutes of charts', async () => {
    await measure(
      async (round) => {
        await query(
          database,
          `insert into endpoint_minutes (endpoint_id, minute, is_hour, successes)
           select n, date_trunc('hour', now()) - cast(:round as integer) * interval '1 hour'
                  - case when is_old then interval '3 days' else n % 80 * interval '1 day' end, not is_old and n % 80 > 2, 1
             from generate_series(0, cast(:others as integer)) as n,
                  lateral (select n % (:others / ${OLD}) = 0 and n / (:others / ${OLD}) < ${OLD}) as o (is_old)`,
          { round, others: others(round) },
        );
      },
      (on) => foldOldMinutes(on, BATCH),
    );
  });
});
