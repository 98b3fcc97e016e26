import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

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
