import { setTimeout as sleep } from 'node:timers/promises';
import knex, { type Knex } from 'knex';
import { connectionOf, direct } from './connection.ts';
import type { DatabasePool } from './database.ts';
import { isLockTimeout } from './error-class.ts';
import { MIGRATION_LOCK } from './migration-lock.ts';
import {
  applyFile,
  FUNCTIONS,
  MIGRATIONS,
  type Migrations,
  noteFile,
  SCHEMA,
  type SqlFile,
} from './migrations.ts';
import { findPrimary } from './primary.ts';

/** What a later release applied is none of our business: a step back works on its schema. */
function knexOptions(migrations: Migrations) {
  const migrationSource: Knex.MigrationSource<string> = {
    getMigrations: async () => Object.keys(migrations),
    getMigrationName: (name) => name,
    getMigration: async (name) => {
      const migration = migrations[name];
      if (migration === undefined) throw new Error(`unknown migration ${name}`);
      return { ...migration, down: NO_WAY_BACK };
    },
  };
  return { migrationSource, tableName: 'schema_migrations', disableMigrationsListValidation: true };
}

/** knex asks for one. */
const NO_WAY_BACK = () => Promise.reject(new Error('a step back works on the schema as it is'));

/** Every failure reaches the caller as an error; knex's own copy would break the JSON lines of the log. */
const SILENT = { warn() {}, error() {}, debug() {}, deprecate() {} };

/** An index of a large table takes its time. */
const NO_TIMEOUTS = { statementMs: 0, answerMs: 0 };

/** A lock that is waited for makes all later statements on the table wait: less than upstream waits for a response. */
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

export type MigrateOptions = {
  migrations?: Migrations;
  tries?: number;
};

/**
 * Brings schema and functions to the newest version; returns the names of what was applied. Each migration is done or
 * not, by itself: after a kill or a failure the next call goes on where this one ended.
 */
export async function migrate(
  database: DatabasePool,
  { migrations = MIGRATIONS, tries = TRIES }: MigrateOptions = {},
): Promise<string[]> {
  const options = knexOptions(migrations);
  return await withKnex(database, async (migrator) => {
    await requireBaseline(migrator);
    // No other process migrates now, so the holder of knex's own lock was killed.
    await migrator.migrate.forceFreeMigrationsLock(options);
    const applied: string[] = [];
    for (;;) {
      const [, names] = await whenFree(tries, () => migrator.migrate.up(options));
      if (names.length === 0) break;
      applied.push(...names);
    }
    const replaced = await whenFree(tries, () => replaceFunctions(migrator));
    return replaced ? [...applied, FUNCTIONS.name] : applied;
  });
}

/** A long reader, such as a backup, holds a migration up and not the installation. */
const TRIES = 60;
const TRY_AGAIN_MS = 2_000;

async function whenFree<T>(tries: number, work: () => Promise<T>): Promise<T> {
  for (let tried = 1; ; tried += 1) {
    try {
      return await work();
    } catch (error) {
      if (!isLockTimeout(error) || tried >= tries) throw error;
      await sleep(TRY_AGAIN_MS);
    }
  }
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
  const { rows } = await migrator.raw('select from schema_files where name = :name and sha256 = :sha256', {
    name,
    sha256,
  });
  return rows.length > 0;
}

/** Over one separate connection, once no other process migrates; the lock ends with the connection. */
async function withKnex<T>({ options }: DatabasePool, work: (migrator: Knex) => Promise<T>): Promise<T> {
  const connection = connectionOf({ ...direct(options), fixedPlans: false, timeouts: NO_TIMEOUTS });
  connection.options += ` -c lock_timeout=${LOCK_TIMEOUT_MS}`;
  Object.assign(connection, await findPrimary(connection));
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
  const { rows } = await migrator.raw('select pg_try_advisory_lock(:migrationLock::bigint) as locked', {
    migrationLock: MIGRATION_LOCK,
  });
  return rows[0].locked;
}
