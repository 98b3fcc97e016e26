import type { Database } from '../postgres/database.ts';
import type { SecretBox } from './secret-box.ts';

/** A database with the box that seals and opens its secret columns. */
export type SealedDatabase = { database: Database; secretBox: SecretBox };
