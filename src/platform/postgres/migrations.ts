import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import type { Knex } from 'knex';

/** One that sets `transaction` to false runs without one, as a concurrent index needs it. None has a way back (docs/decisions/0046). */
type Migration = Knex.Migration & { config?: { transaction: boolean } };

export type Migrations = Readonly<Record<string, Migration>>;

export type SqlFile = { name: string; text: string; sha256: string };

/** Sources are run as they are, so the files lie beside this one everywhere. */
const FOLDER = new URL('./migrations/', import.meta.url);

const CONCURRENT_INDEX = /^create index concurrently (\w+)[^;]+;/gm;

/** The tables as a new database gets them; never applied again. */
export const SCHEMA = read('schema.sql');

/** The functions; applied again whenever their text has changed. */
export const FUNCTIONS = read('functions.sql');

/** All migrations in order: the first schema, and each file that changes it. What has been released is never edited. */
export const MIGRATIONS: Migrations = {
  '0001-baseline': { up: makeBaseline },
  ...Object.fromEntries(
    readdirSync(FOLDER)
      .filter((file) => /^\d{4}-/.test(file))
      .toSorted()
      .map((file) => [file.replace('.sql', ''), migrationOf(read(file))]),
  ),
};

/** All tables and functions. The schema names functions; their bodies name tables only when they run. */
async function makeBaseline(migrator: Knex): Promise<void> {
  await applyFile(migrator, FUNCTIONS);
  await applyFile(migrator, SCHEMA);
  for (const file of [SCHEMA, FUNCTIONS]) await noteFile(migrator, file);
}

/** Indexes that are made while their table is written to come last, each by itself and outside a transaction. */
export function migrationOf({ text }: Pick<SqlFile, 'text'>): Migration {
  const indexes = [...text.matchAll(CONCURRENT_INDEX)];
  return {
    config: { transaction: indexes.length === 0 },
    up: async (migrator) => {
      // A trigger needs its function, and those of this version are applied behind the migrations.
      if (text.includes('create trigger')) await applyFile(migrator, FUNCTIONS);
      await applyFile(migrator, { text: text.replace(CONCURRENT_INDEX, '-- $1') });
      for (const [statement, name = ''] of indexes) await makeIndex(migrator, name, statement);
    },
  };
}

/** What an earlier try left, which was cut off, is of no use and is made again. */
async function makeIndex(migrator: Knex, name: string, statement: string): Promise<void> {
  const { rows } = await migrator.raw(
    'select indisvalid as valid from pg_index where indexrelid = to_regclass(:name)',
    { name },
  );
  if (rows[0]?.valid === true) return;
  await migrator.raw(`drop index concurrently if exists ${name}`);
  await migrator.raw(statement);
}

/** Runs a file. knex takes a bare question mark for a binding. */
export async function applyFile(migrator: Knex, { text }: Pick<SqlFile, 'text'>): Promise<void> {
  await migrator.raw(text.replaceAll('?', '\\?'));
}

export async function noteFile(migrator: Knex, { name, sha256 }: SqlFile): Promise<void> {
  await migrator.raw(
    `insert into schema_files (name, sha256) values (?, ?)
     on conflict (name) do update set sha256 = excluded.sha256, applied_at = now()`,
    [name, sha256],
  );
}

function read(name: string): SqlFile {
  const text = readFileSync(new URL(name, FOLDER), 'utf8');
  return { name, text, sha256: createHash('sha256').update(withoutComments(text)).digest('hex') };
}

/** A better comment is no other schema. */
function withoutComments(text: string): string {
  return text.replace(/--.*$/gm, '').replace(/\s+/g, ' ').trim();
}
