import knex from 'knex';
import { connectionOf, type DatabasePool } from './database.ts';
import { migrationSource } from './migrations/migration-list.ts';

const MIGRATIONS = { migrationSource, tableName: 'schema_migrations' };

/** Every failure reaches the caller as an error; knex's own copy would break the JSON lines of the log. */
const SILENT = { warn() {}, error() {}, debug() {}, deprecate() {} };

/** Brings the schema to the newest version; returns the names of the migrations that ran. */
export async function migrate(database: DatabasePool): Promise<string[]> {
  return await withKnex(database, async (migrator) => {
    const [, names] = (await migrator.migrate.latest(MIGRATIONS)) as [number, string[]];
    return names;
  });
}

/** Undoes every migration; for the check that each can be undone. */
export async function rollbackAll(database: DatabasePool): Promise<void> {
  await withKnex(database, (migrator) => migrator.migrate.rollback(MIGRATIONS, true));
}

/** Over connections of its own: migrations are the only thing that knex does here. */
async function withKnex<T>(
  { options }: DatabasePool,
  work: (migrator: ReturnType<typeof knex>) => Promise<T>,
): Promise<T> {
  const migrator = knex({ client: 'pg', connection: { ...connectionOf(options) } as object, log: SILENT });
  try {
    return await work(migrator);
  } finally {
    await migrator.destroy();
  }
}
