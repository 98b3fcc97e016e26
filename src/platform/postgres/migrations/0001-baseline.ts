import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Knex } from 'knex';

/** All tables and functions. The schema names functions; their bodies name tables only when they run. */
export async function up(knex: Knex): Promise<void> {
  await applyFile(knex, FUNCTIONS);
  await applyFile(knex, SCHEMA);
  for (const file of [SCHEMA, FUNCTIONS]) await noteFile(knex, file);
}

/** Runs a file. knex takes a bare question mark for a binding. */
export async function applyFile(knex: Knex, { text }: SqlFile): Promise<void> {
  await knex.raw(text.replaceAll('?', '\\?'));
}

export async function noteFile(knex: Knex, { name, sha256 }: SqlFile): Promise<void> {
  await knex.raw(
    `insert into schema_files (name, sha256) values (?, ?)
     on conflict (name) do update set sha256 = excluded.sha256, applied_at = now()`,
    [name, sha256],
  );
}

export type SqlFile = { name: string; text: string; sha256: string };

/** The tables as a new database gets them; never applied again. */
export const SCHEMA = read('schema.sql');

/** The functions; applied again whenever their text has changed. */
export const FUNCTIONS = read('functions.sql');

/** Sources are run as they are, so the files lie beside this one everywhere. */
function read(name: string): SqlFile {
  const text = readFileSync(new URL(`./${name}`, import.meta.url), 'utf8');
  return { name, text, sha256: createHash('sha256').update(withoutComments(text)).digest('hex') };
}

/** A better comment is no other schema. */
function withoutComments(text: string): string {
  return text.replace(/--.*$/gm, '').replace(/\s+/g, ' ').trim();
}
