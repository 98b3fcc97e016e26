import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../logger.ts';
import type { Database } from './database.ts';
import { isUndefinedTable } from './error-class.ts';
import { MIGRATION_LOCK } from './migration-lock.ts';
import { FUNCTIONS, MIGRATIONS } from './migrations.ts';
import { query } from './sql.ts';

export type SchemaState = {
  applied: { name: string; at: Date }[];
  pending: string[];
  /** Applied by a later version: this one works beside it. */
  later: string[];
  functions: 'current' | 'of another version';
  /** Indexes whose making was cut off: `migrate` makes them again. */
  invalidIndexes: string[];
  isRunning: boolean;
};

/** Reads the state of the schema; changes nothing and waits for nothing. */
export async function readSchemaState(database: Database, migrations = MIGRATIONS): Promise<SchemaState> {
  const applied = await readApplied(database);
  const names = Object.keys(migrations);
  const [row] = await query<{ invalid: string[]; running: boolean }>(
    database,
    `select array(select indexrelid::regclass::text from pg_index where not indisvalid order by 1) as invalid,
            exists (select from pg_locks where locktype = 'advisory' and granted and objsubid = 1
                       and classid = 0 and objid = :migrationLock
                       and database = (select oid from pg_database where datname = current_database())) as running`,
    { migrationLock: MIGRATION_LOCK },
  );
  return {
    applied,
    pending: names.filter((name) => !applied.some((done) => done.name === name)),
    later: applied.map(({ name }) => name).filter((name) => !names.includes(name)),
    functions: (await hasFunctions(database)) ? 'current' : 'of another version',
    invalidIndexes: row?.invalid ?? [],
    isRunning: row?.running ?? false,
  };
}

export async function missingMigrations(database: Database): Promise<string[]> {
  const applied = await readApplied(database);
  return Object.keys(MIGRATIONS).filter((name) => !applied.some((done) => done.name === name));
}

async function checkSchema(database: Database): Promise<void> {
  const missing = await missingMigrations(database);
  if (missing.length > 0) throw new SchemaBehindError(missing);
}

class SchemaBehindError extends Error {
  constructor(missing: readonly string[]) {
    super(`the schema of the database lacks ${missing.join(', ')}: run "heliograph-server migrate"`);
    this.name = 'SchemaBehindError';
  }
}

const LOOK_AGAIN_MS = 1_000;

/** Waits until the schema is that of this version or later. A database that is away is no reason to wait here. */
export async function waitForSchema(database: Database, logger: Logger): Promise<void> {
  for (let looks = 0; ; looks += 1) {
    try {
      return await checkSchema(database);
    } catch (error) {
      if (!(error instanceof SchemaBehindError)) return;
      if (looks === 0) logger.warn(`waiting: ${error.message}`);
      await sleep(LOOK_AGAIN_MS);
    }
  }
}

async function readApplied(database: Database): Promise<{ name: string; at: Date }[]> {
  return await rowsIfThere(
    query(database, 'select name, migration_time as at from schema_migrations order by id'),
  );
}

async function hasFunctions(database: Database): Promise<boolean> {
  const { name, sha256 } = FUNCTIONS;
  const noted = 'select from schema_files where name = :name and sha256 = :sha256';
  return (await rowsIfThere(query(database, noted, { name, sha256 }))).length > 0;
}

/** A new database has none of the tables. */
async function rowsIfThere<Row>(reading: Promise<Row[]>): Promise<Row[]> {
  try {
    return await reading;
  } catch (error) {
    if (isUndefinedTable(error)) return [];
    throw error;
  }
}
