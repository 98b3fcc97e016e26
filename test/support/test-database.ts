import { randomBytes, randomInt } from 'node:crypto';
import { afterAll, beforeAll, inject, onTestFinished } from 'vitest';
import { type Database, type DatabasePool, openDatabase } from '../../src/platform/postgres/database.ts';
import { query } from '../../src/platform/postgres/sql.ts';
import { TEMPLATE_DATABASE } from './infrastructure-setup.ts';
import { seedFixtureAccounts } from './test-accounts.ts';

export type TestDatabase = { database: DatabasePool; url: string; close(): Promise<void> };

/** A migrated database of one's own on the real server; `close` drops it. `fixedPlans`: as the worker connects. */
export async function createTestDatabase(poolMax = 10, fixedPlans = false): Promise<TestDatabase> {
  const { postgresUrl } = inject('infrastructure');
  const name = `test_${randomBytes(6).toString('hex')}`;
  // A copy through the log, PostgreSQL's own way, costs twice the processor time.
  await asAdmin(postgresUrl, `create database ${name} template ${TEMPLATE_DATABASE} strategy file_copy`);
  const url = new URL(postgresUrl);
  url.pathname = `/${name}`;
  const database = openDatabase({ url: url.href, poolMax, fixedPlans, applicationName: 'test' });
  return {
    database,
    url: url.href,
    close: async () => {
      await database.destroy();
      await asAdmin(postgresUrl, `drop database if exists ${name} with (force)`);
    },
  };
}

/** As `createTestDatabase`, closed when the test ends. */
export async function testDatabase(poolMax = 10, fixedPlans = false): Promise<TestDatabase> {
  const created = await createTestDatabase(poolMax, fixedPlans);
  onTestFinished(created.close);
  return created;
}

/** As `testDatabase`, connected to as the worker does. */
export async function testWorkerDatabase(poolMax = 10): Promise<TestDatabase> {
  return await testDatabase(poolMax, true);
}

/** As `testDatabase`, with the fixtures' accounts. */
export async function seededDatabase(poolMax = 10, fixedPlans = false): Promise<TestDatabase> {
  const created = await testDatabase(poolMax, fixedPlans);
  await seedFixtureAccounts(created.database);
  return created;
}

/** As `seededDatabase`, connected to as the worker does. */
export async function seededWorkerDatabase(poolMax = 10): Promise<TestDatabase> {
  return await seededDatabase(poolMax, true);
}

/** As `createTestDatabase`, one for the tests of a file: filled before the first of them. Each makes its own tenant. */
export function databaseOfFile(poolMax = 10): TestDatabase {
  const store = {} as TestDatabase;
  beforeAll(async () => {
    Object.assign(store, await createTestDatabase(poolMax));
  });
  afterAll(() => store.close());
  return store;
}

const TABLES_OF_WORKFLOWS = [
  'messages',
  'orders',
  'replays',
  'broadcasts',
  'setup_links',
  'api_key_requests',
  'contacts',
  'webhook_endpoints',
];

/**
 * Draws ids from a range of one's own where ids of workflows are made of them: test files run side by side on one
 * Temporal, which takes a workflow for started when another file has one with its id. An older schema has fewer tables.
 */
export async function drawIdsApart(database: Database): Promise<void> {
  for (const table of TABLES_OF_WORKFLOWS) {
    const first = randomInt(1_000_000, 2 ** 47);
    const text = `select setval(pg_get_serial_sequence(:table, 'id'), :first) where to_regclass(:table) is not null`;
    await query(database, text, { table, first });
  }
}

/** Copies of one template cannot be made side by side, so a clash is tried again. */
async function asAdmin(url: string, statement: string): Promise<void> {
  const admin = openDatabase({ url, poolMax: 1, applicationName: 'test-admin' });
  try {
    for (let tries = 1; ; tries += 1) {
      try {
        await admin.raw(statement);
        return;
      } catch (error) {
        if (tries >= 50 || !/being accessed by other users/.test(String(error))) throw error;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }
  } finally {
    await admin.destroy();
  }
}
