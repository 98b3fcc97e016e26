import { setTimeout as sleep } from 'node:timers/promises';
import knex, { type Knex } from 'knex';
import { connectionOf } from './connection.ts';
import { type DatabasePool, MIGRATION_LOCK } from './database.ts';
import * as baseline from './migrations/0001-baseline.ts';
import { applyFile, FUNCTIONS, noteFile, SCHEMA, type SqlFile } from './migrations/0001-baseline.ts';

/** One that sets `transaction` to false runs without one, as a concurrent index needs it. */
type Migration = Knex.Migration & { config?: { transaction: boolean } };

/** All migrations in order. Append only: what has been released is never edited (docs/decisions/0003 and 0046). */
const MIGRATIONS: Record<string, Migration> = {
  '0001-baseline': { up: baseline.up, down: baseline.down },
};

/** Explicit list instead of a directory scan: a bundled or type-stripped file name never changes a migration's name. */
const migrationSource: Knex.MigrationSource<string> = {
  getMigrations: async () => Object.keys(MIGRATIONS),
  getMigrationName: (name) => name,
  getMigration: async (name) => {
    const migration = MIGRATIONS[name];
    if (migration === undefined) throw new Error(`unknown migration ${name}`);
    return migration;
  },
};

/** What a later release applied is none of our business: a step back works on its schema. */
const KNEX_OPTIONS = {
  migrationSource,
  tableName: 'schema_migrations',
  disableMigrationsListValidation: true,
};

/** Every failure reaches the caller as an error; knex's own copy would break the JSON lines of the log. */
const SILENT = { warn() {}, error() {}, debug() {}, deprecate() {} };

/** An index of a large table takes its time. */
const NO_TIMEOUTS = { statementMs: 0, answerMs: 0 };

/** Whoever waits for a table keeps everybody waiting who comes later: less than upstream waits for its answer. */
const LOCK_TIMEOUT_MS = 3_000;

const LOCK_PAUSE_MS = 200;

/** The database was made by another `schema.sql`, which nothing leads away from. */
export class OtherBaselineError extends Error {
  constructor() {
    super(
      'the database was made by another schema.sql, and there is no migration from that one: ' +
        'start with an empty database (npm start -- --fresh)',
    );
    this.name = 'OtherBaselineError';
  }
}

/** Brings schema and functions to the newest version; returns the names of what was applied. */
export async function migrate(database: DatabasePool): Promise<string[]> {
  return await withKnex(database, async (migrator) => {
    await requireBaseline(migrator);
    // Nobody else is at it, so whoever has knex's own lock was killed.
    await migrator.migrate.forceFreeMigrationsLock(KNEX_OPTIONS);
    const [, names] = (await migrator.migrate.latest(KNEX_OPTIONS)) as [number, string[]];
    return (await replaceFunctions(migrator)) ? [...names, FUNCTIONS.name] : names;
  });
}

/** Undoes every migration; for the check that each can be undone. */
export async function rollbackAll(database: DatabasePool): Promise<void> {
  await withKnex(database, (migrator) => migrator.migrate.rollback(KNEX_OPTIONS, true));
}

/** One that is not released yet may change, but not under a database that has it. */
async function requireBaseline(migrator: Knex): Promise<void> {
  const { rows } = await migrator.raw(
    `select to_regclass('tenants') is not null as made, to_regclass('schema_files') is not null as noted`,
  );
  const [{ made, noted }] = rows;
  if (made && !(noted && (await isNoted(migrator, SCHEMA)))) throw new OtherBaselineError();
}

/** False when the database has them as they are. */
async function replaceFunctions(migrator: Knex): Promise<boolean> {
  if (await isNoted(migrator, FUNCTIONS)) return false;
  await migrator.transaction(async (trx) => {
    await applyFile(trx, FUNCTIONS);
    await noteFile(trx, FUNCTIONS);
  });
  return true;
}

async function isNoted(migrator: Knex, { name, sha256 }: SqlFile): Promise<boolean> {
  const { rows } = await migrator.raw('select from schema_files where name = ? and sha256 = ?', [
    name,
    sha256,
  ]);
  return rows.length > 0;
}

/** Over one connection of its own, once nobody else migrates; the lock ends with the connection. */
async function withKnex<T>({ options }: DatabasePool, work: (migrator: Knex) => Promise<T>): Promise<T> {
  const connection = connectionOf({ ...options, fixedPlans: false, timeouts: NO_TIMEOUTS });
  connection.options += ` -c lock_timeout=${LOCK_TIMEOUT_MS}`;
  const migrator = knex({
    client: 'pg',
    connection: { ...connection } as object,
    pool: { min: 1, max: 1 },
    log: SILENT,
  });
  try {
    // Asked again and again: a statement that waits has a snapshot, for which a concurrent index would wait in turn.
    while (!(await tryLock(migrator))) await sleep(LOCK_PAUSE_MS);
    return await work(migrator);
  } finally {
    await migrator.destroy();
  }
}

async function tryLock(migrator: Knex): Promise<boolean> {
  const { rows } = await migrator.raw('select pg_try_advisory_lock(?::bigint) as locked', [MIGRATION_LOCK]);
  return rows[0].locked;
}
