import type { Database } from '../../platform/postgres/database.ts';
import { execute, queryValue } from '../../platform/postgres/sql.ts';

/** A person at a provider, or in the operator's product. */
export type Identity = { issuer: string; subject: string };

/** The operator's product vouches for these; the issuer of a provider is a URL. */
export const PLATFORM_ISSUER = 'platform';

export async function findUserOfIdentity(
  database: Database,
  { issuer, subject }: Identity,
): Promise<string | null> {
  const text = 'select user_id from user_identities where issuer = :issuer and subject = :subject';
  return await queryValue<string>(database, text, { issuer, subject });
}

/** Stores a user's identity at a provider. False: the user has another one there. */
export async function insertIdentity(
  database: Database,
  userId: string,
  { issuer, subject }: Identity,
): Promise<boolean> {
  const added = await execute(
    database,
    'insert into user_identities (issuer, subject, user_id) values (:issuer, :subject, :userId) on conflict do nothing',
    { issuer, subject, userId },
  );
  return added === 1;
}
