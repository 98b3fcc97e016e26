import type { SecretBox } from './crypto/secret-box.ts';
import type { Database } from './postgres/database.ts';

/** What the functions of this folder work with. */
export type AccountTools = { database: Database; secretBox: SecretBox };
