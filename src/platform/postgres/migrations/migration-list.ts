import type { Knex } from 'knex';
import * as baseline from './0001-baseline.ts';

/** One that sets `transaction` to false runs without one, as a concurrent index needs it. */
type Migration = Knex.Migration & { config?: { transaction: boolean } };

/** All migrations in order. Append only: what has been released is never edited (docs/decisions/0003 and 0046). */
const MIGRATIONS: Record<string, Migration> = {
  '0001-baseline': { up: baseline.up, down: baseline.down },
};

/** Explicit list instead of a directory scan: a bundled or type-stripped file name never changes a migration's name. */
export const migrationSource: Knex.MigrationSource<string> = {
  getMigrations: async () => Object.keys(MIGRATIONS),
  getMigrationName: (name) => name,
  getMigration: async (name) => {
    const migration = MIGRATIONS[name];
    if (migration === undefined) throw new Error(`unknown migration ${name}`);
    return migration;
  },
};
