import type { Database } from '../database/database.ts';
import type { SecretBox } from '../domain/secret-box.ts';

/** What the functions of this folder work with. */
export type AccountTools = { database: Database; secretBox: SecretBox };
