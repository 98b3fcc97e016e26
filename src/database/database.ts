import knex, { type Knex } from 'knex';
import pg from 'pg';
import { migrationSource } from './migrations/migration-list.ts';

/** What a repository runs on: the pool, or one transaction. */
export type Database = Knex;
export type Transaction = Knex.Transaction;

/** Dates without a time stay text: a JavaScript Date would shift them by the time zone. */
pg.types.setTypeParser(pg.types.builtins.DATE, (text) => text);

const STATEMENT_TIMEOUT_MS = 30_000;
const LOCK_TIMEOUT_MS = 10_000;

/** A frozen process must not hold locks for ever: the server ends its transaction after this time. */
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 10_000;

/** Every failure reaches the caller as an error; knex's own copy would break the JSON lines of the log. */
const SILENT = { warn() {}, error() {}, debug() {}, deprecate() {} };

/** Opens a pool of up to `poolMax` connections; `applicationName` shows in pg_stat_activity. */
export function openDatabase(options: { url: string; poolMax: number; applicationName: string }): Database {
  return knex({
    client: 'pg',
    connection: {
      connectionString: options.url,
      application_name: options.applicationName,
      statement_timeout: STATEMENT_TIMEOUT_MS,
      idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_TIMEOUT_MS,
      connectionTimeoutMillis: 5_000,
      keepAlive: true,
      options: `-c timezone=UTC -c lock_timeout=${LOCK_TIMEOUT_MS}`,
    },
    pool: { min: 0, max: options.poolMax, acquireTimeoutMillis: 8_000, idleTimeoutMillis: 60_000 },
    acquireConnectionTimeout: 8_000,
    asyncStackTraces: false,
    log: SILENT,
  });
}

/** Brings the schema to the newest version; returns the names of the migrations that ran. */
export async function migrate(database: Database): Promise<string[]> {
  const [, names] = (await database.migrate.latest({ migrationSource, tableName: 'schema_migrations' })) as [
    number,
    string[],
  ];
  return names;
}

/** Undoes every migration; for the check that each can be undone. */
export async function rollbackAll(database: Database): Promise<void> {
  await database.migrate.rollback({ migrationSource, tableName: 'schema_migrations' }, true);
}
