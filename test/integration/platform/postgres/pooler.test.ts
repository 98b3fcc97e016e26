import { execFile } from 'node:child_process';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { DatabaseOptions } from '../../../../src/platform/postgres/connection.ts';
import { LastStatements, openDatabase } from '../../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../../src/platform/postgres/sql.ts';
import { startApiProcess } from '../../../support/application-process.ts';
import { findPgBouncer, keepsStatements, startPgBouncer } from '../../../support/pgbouncer.ts';
import { addEndpoint, seedFixtureAccounts } from '../../../support/test-accounts.ts';
import { testDatabase } from '../../../support/test-database.ts';
import { testSettings } from '../../../support/test-settings.ts';
import { fixtureBody } from '../../../support/upstream-fixtures.ts';
import { eventually, startReceiver } from '../../../support/webhook-receiver.ts';
import { startWorkerProcess } from '../../../support/worker-process.ts';
import { signed } from '../../api/api-harness.ts';

const MAIN = new URL('../../../../src/main.ts', import.meta.url).pathname;
const WABA = '900000000000101';

const program = findPgBouncer();
if (program === null)
  process.stdout.write('PgBouncer is neither installed nor to be had from apt: its tests do not run\n');

const mayPrepare = program !== null && keepsStatements(program);
if (program !== null && !mayPrepare)
  process.stdout.write('PgBouncer is older than 1.21: what it keeps of statements is not tested\n');

async function pooled(settings: readonly string[] = []) {
  if (program === null) throw new Error('unreachable');
  const { database, url: directUrl } = await testDatabase();
  const url = await startPgBouncer(program, directUrl, settings);
  const opened = (options: Partial<DatabaseOptions> = {}) => {
    const pool = openDatabase({ url, directUrl, poolMax: 8, applicationName: 'pooled', ...options });
    onTestFinished(() => pool.destroy());
    return pool;
  };
  return { database, url, directUrl, opened };
}

/** What a start prints, and its exit code. */
async function run(command: string, env: Record<string, string>): Promise<{ code: number; stderr: string }> {
  return await new Promise((resolve) => {
    execFile(process.execPath, [MAIN, command], { env, timeout: 60_000 }, (error, _stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), stderr }),
    );
  });
}

describe.skipIf(program === null)('behind a pooler that gives a connection for one transaction', () => {
  test('each transaction and each statement has the settings of its own pool, and leaves none behind', async () => {
    const { opened } = await pooled();
    const durable = opened({ timeouts: { statementMs: 7_000, answerMs: 9_000 }, fixedPlans: true });
    const other = opened({ durable: false });
    const shown = `select current_setting('timezone') as zone, current_setting('lock_timeout') as lock,
      current_setting('statement_timeout') as statement, current_setting('synchronous_commit') as commit,
      current_setting('plan_cache_mode') as plans, current_setting('idle_in_transaction_session_timeout') as idle`;
    const common = { zone: 'UTC', lock: '10s', idle: '10s' };
    const ofDurable = { ...common, statement: '7s', commit: 'on', plans: 'force_generic_plan' };
    const ofOther = { ...common, statement: '30s', commit: 'off', plans: 'auto' };
    await Promise.all(
      Array.from({ length: 40 }, async (_, n) => {
        if (n % 2 === 0) expect(await query(durable, shown)).toEqual([ofDurable]);
        else expect(await other.transaction((trx) => query(trx, shown))).toEqual([ofOther]);
      }),
    );
  });

  test('statements, transactions and savepoints do what they do without it, also side by side', async () => {
    const { database, opened } = await pooled();
    await database.raw('create table kept (n integer primary key)');
    const pool = opened();
    await Promise.all(
      Array.from({ length: 30 }, (_, n) => execute(pool, 'insert into kept values (:n)', { n })),
    );
    await pool.transaction(async (trx) => {
      await execute(trx, 'insert into kept values (:value)', { value: 100 });
      const inner = trx.transaction((nested) =>
        execute(nested, 'insert into kept values (:value)', { value: 100 }),
      );
      await expect(inner).rejects.toMatchObject({ code: '23505' });
      return new LastStatements(execute(trx, 'insert into kept values (:value)', { value: 101 }));
    });
    await expect(execute(pool, 'insert into kept values (:value)', { value: 0 })).rejects.toMatchObject({
      code: '23505',
    });
    await expect(
      pool.transaction(async (trx) => {
        await execute(trx, 'delete from kept');
        throw new Error('undone');
      }),
    ).rejects.toThrow('undone');
    expect(await query(pool, 'select count(*)::integer as n from kept')).toEqual([{ n: 32 }]);
  });

  test.skipIf(!mayPrepare).each([
    [true, 1],
    [false, 0],
  ])(
    'statements keep their names only if the pooler is said to keep them: %s',
    async (poolerPrepares, kept) => {
      const { opened } = await pooled(['max_prepared_statements = 50', 'default_pool_size = 1']);
      const [one, other] = [opened({ poolerPrepares }), opened({ poolerPrepares, fixedPlans: true })];
      const shown = await Promise.all(
        Array.from({ length: 60 }, (_, n) =>
          query(n % 2 === 0 ? one : other, `select ${n} + cast(:n as integer) as sum`, { n }),
        ),
      );
      expect(shown).toEqual(Array.from({ length: 60 }, (_, n) => [{ sum: 2 * n }]));
      const twice = () =>
        query(opened({ poolerPrepares }), 'select cast(:marked as integer) as marked', { marked: 7 });
      expect(await twice()).toEqual(await twice());
      const named = await query(
        opened(),
        `select 1 from pg_prepared_statements where statement like '%as marked%' and statement not like '%prepared%'`,
      );
      expect(named).toHaveLength(kept);
    },
  );

  test.each(mayPrepare ? ['false', 'true'] : ['false'])(
    'API and worker take in and deliver, woken by notifications: %s',
    async (prepares) => {
      const { database, url, directUrl } = await pooled(
        prepares === 'true' ? ['max_prepared_statements = 500'] : [],
      );
      await seedFixtureAccounts(database);
      const receiver = await startReceiver();
      onTestFinished(() => receiver.close());
      await addEndpoint(database, WABA, `${receiver.url}/hook`);
      const settings = testSettings(url, {
        HELIOGRAPH_DATABASE_DIRECT_URL: directUrl,
        HELIOGRAPH_DATABASE_POOLER_PREPARES: prepares,
      });
      expect((await run('migrate', settings)).code).toBe(0);
      const api = await startApiProcess(settings);
      onTestFinished(() => api.kill());
      const worker = startWorkerProcess(settings);
      onTestFinished(() => worker.stop());
      await worker.ready();
      expect((await fetch(`${api.url}/readyz`)).status).toBe(200);
      const body = fixtureBody('in_text');
      const answer = await fetch(`${api.url}/upstream/webhook`, {
        method: 'POST',
        body,
        headers: signed(body),
      });
      expect(answer.status).toBe(200);
      await eventually('delivered', () => receiver.received.length, { is: 1 });
      expect(worker.output()).not.toMatch(/"level":50/);
    },
  );

  test('without the way round it, or with settings that it drops, no process starts, and one sentence says why', async () => {
    const sentence =
      'HELIOGRAPH_DATABASE_URL leads to a connection pooler, which keeps no session: ' +
      'set HELIOGRAPH_DATABASE_DIRECT_URL to the PostgreSQL server itself as well\n';
    const { url } = await pooled();
    const dropping = await pooled(['ignore_startup_parameters = options,extra_float_digits']);
    for (const [command, databaseUrl] of [
      ['api', url],
      ['worker', dropping.url],
      ['migrate', url],
    ] as const) {
      expect(await run(command, testSettings(databaseUrl)), command).toEqual({ code: 2, stderr: sentence });
    }
    const both = await run('api', testSettings(url, { HELIOGRAPH_DATABASE_DIRECT_URL: url }));
    expect(both).toEqual({
      code: 2,
      stderr:
        'HELIOGRAPH_DATABASE_DIRECT_URL leads to a connection pooler: set it to the PostgreSQL server itself\n',
    });
  });
});
