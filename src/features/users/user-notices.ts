import type { Database } from '../../platform/postgres/database.ts';
import { deleteUpTo, execute, query } from '../../platform/postgres/sql.ts';

const NOTICES_KEPT_DAYS = 180;

/** A change of an account that its owner should know of; `by` names who made it, null for the owner. */
export type UserNotice = {
  id: string;
  at: string;
  kind:
    | 'link_session'
    | 'password_by_link'
    | 'password_confirmed'
    | 'second_factor_set'
    | 'second_factor_reset'
    | 'identity_linked'
    | 'sessions_ended';
  by: string | null;
  ip: string | null;
};

export async function addUserNotice(
  database: Database,
  userId: string,
  { kind, by, ip }: Pick<UserNotice, 'kind' | 'by' | 'ip'>,
): Promise<void> {
  const text = 'insert into user_notices (user_id, kind, by, ip) values (:userId, :kind, :by, :ip)';
  await execute(database, text, { userId, kind, by, ip });
}

/** The last changes of an account, the newest first, those that its owner has confirmed included. */
export async function listUserNotices(database: Database, userId: string, limit = 20): Promise<UserNotice[]> {
  const text =
    'select id, at, kind, by, ip from user_notices where user_id = :userId order by id desc limit :limit';
  return await query<UserNotice>(database, text, { userId, limit });
}

export async function confirmNotices(database: Database, userId: string, upToId: string): Promise<void> {
  const text =
    'update user_notices set seen_at = now() where user_id = :userId and id <= :upToId and seen_at is null';
  await execute(database, text, { userId, upToId });
}

export async function forgetOldNotices(database: Database, limit: number): Promise<number> {
  const which = `at < now() - ${NOTICES_KEPT_DAYS} * interval '1 day'`;
  return await deleteUpTo(database, limit, 'user_notices', which);
}
