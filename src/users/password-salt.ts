import { createHash } from 'node:crypto';
import type { Database } from '../platform/postgres/database.ts';
import { query } from '../platform/postgres/sql.ts';

const SALT_BYTES = 16;

/**
 * The salt of the passwords of an address. All accounts of an address have the same, so that one computation tries a
 * password against all of them, however many there are.
 */
export async function passwordSaltOf(database: Database, email: string): Promise<Buffer> {
  const [row] = await query<{ salt: Buffer }>(database, 'select salt from password_salt');
  if (row === undefined) throw new Error('the installation has no salt for passwords');
  return createHash('sha256').update(row.salt).update(email).digest().subarray(0, SALT_BYTES);
}
