import type { Database } from '../platform/postgres/database.ts';
import { execute, query } from '../platform/postgres/sql.ts';

/** A person at an OpenID provider. */
export type Identity = { issuer: string; subject: string };

/** The user who signed in as this person before; null when nobody did. */
export async function findUserOfIdentity(
  database: Database,
  { issuer, subject }: Identity,
): Promise<string | null> {
  const [row] = await query<{ userId: string }>(
    database,
    'select user_id as "userId" from user_identities where issuer = ? and subject = ?',
    [issuer, subject],
  );
  return row?.userId ?? null;
}

/** Remembers whom a user is at a provider. False: the user is somebody else there. */
export async function insertIdentity(
  database: Database,
  userId: string,
  { issuer, subject }: Identity,
): Promise<boolean> {
  const added = await execute(
    database,
    'insert into user_identities (issuer, subject, user_id) values (?, ?, ?) on conflict do nothing',
    [issuer, subject, userId],
  );
  return added === 1;
}

/** Forgets whom a user is at providers; false when he is nobody there. */
export async function deleteIdentities(database: Database, userId: string): Promise<boolean> {
  return (await execute(database, 'delete from user_identities where user_id = ?', [userId])) > 0;
}
