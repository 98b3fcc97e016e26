import { execFile } from 'node:child_process';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { DatabaseOptions } from '../../../../src/platform/postgres/connection.ts';
import { LastStatements, openDatabase } from '../../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../../src/platform/postgres/sql.ts';
import { startApiProcess } from '../../../support/application-process.ts';
import { findPgBouncer, startPgBouncer } from '../../../support/pgbouncer.ts';
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

  test('API and worker take in and deliver, woken by notifications', async () => {
    const { database, url, directUrl } = await pooled();
    await seedFixtureAccounts(database);
    const receiver = await startReceiver();
    onTestFinished(() => receiver.close());
    await addEndpoint(database, WABA, `${receiver.url}/hook`);
    const settings = testSettings(url, { HELIOGRAPH_DATABASE_DIRECT_URL: directUrl });
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
  });

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
