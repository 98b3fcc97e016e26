import type { Database } from '../postgres/database.ts';
import type { SecretBox } from './secret-box.ts';

export type SealedDatabase = { database: Database; secretBox: SecretBox };
