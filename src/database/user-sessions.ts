import type { PortalRole } from '../domain/portal-role.ts';
import type { Database } from './database.ts';
import { execute, query } from './sql.ts';

/** Where a session was begun. */
export type SessionClient = { ip: string | null; userAgent: string | null };

export type NewSession = SessionClient & {
  /** SHA-256 of the cookie. */
  tokenHash: Buffer;
  userId: string;
  csrfToken: string;
  idleMs: number;
  lifetimeMs: number;
};

/** A session that holds, with its user. */
export type OpenSession = {
  id: string;
  csrfToken: string;
  userId: string;
  email: string;
  name: string;
  role: PortalRole;
  tenantId: string | null;
  /** Its last use was noted more than a minute ago. */
  isUseStale: boolean;
};

const HOLDS = 'least(s.idle_until, s.expires_at) > now()';

export async function insertSession(database: Database, session: NewSession): Promise<void> {
  await execute(
    database,
    `insert into user_sessions (token_hash, user_id, csrf_token, idle_until, expires_at, ip, user_agent)
     values (:tokenHash, :userId, :csrfToken, now() + :idleMs * interval '1 millisecond',
             now() + :lifetimeMs * interval '1 millisecond', :ip, :userAgent)`,
    session,
  );
}

/** The sessions behind cookies that hold, read afresh each time so that their end counts at once. */
export async function findOpenSessions(
  database: Database,
  tokenHashes: readonly Buffer[],
): Promise<(OpenSession & { tokenHash: Buffer })[]> {
  return await query<OpenSession & { tokenHash: Buffer }>(
    database,
    `select s.id, s.csrf_token as "csrfToken", u.id as "userId", u.email, u.name, u.role, u.tenant_id as "tenantId",
            s.last_seen_at < now() - interval '1 minute' as "isUseStale", s.token_hash as "tokenHash"
       from user_sessions s join users u on u.id = s.user_id
      where s.token_hash = any (cast(? as bytea[])) and ${HOLDS} and u.disabled_at is null`,
    [tokenHashes],
  );
}

/** Moves the idle limit on. */
export async function noteSessionUse(database: Database, sessionId: string, idleMs: number): Promise<void> {
  await execute(
    database,
    `update user_sessions set last_seen_at = now(), idle_until = now() + ? * interval '1 millisecond' where id = ?`,
    [idleMs, sessionId],
  );
}

export type SessionSummary = SessionClient & { id: string; createdAt: Date; lastSeenAt: Date };

/** The sessions of a user that hold, the one used last first. */
export async function listSessions(database: Database, userId: string): Promise<SessionSummary[]> {
  return await query<SessionSummary>(
    database,
    `select s.id, s.created_at as "createdAt", s.last_seen_at as "lastSeenAt", s.ip, s.user_agent as "userAgent"
       from user_sessions s where s.user_id = ? and ${HOLDS} order by s.last_seen_at desc, s.id desc`,
    [userId],
  );
}

/** Ends one session of a user; false when there is none such. */
export async function deleteSession(database: Database, userId: string, sessionId: string): Promise<boolean> {
  const deleted = await execute(database, 'delete from user_sessions where user_id = ? and id = ?', [
    userId,
    sessionId,
  ]);
  return deleted === 1;
}

/** Ends all sessions of a user. */
export async function deleteSessions(database: Database, userId: string): Promise<void> {
  await execute(database, 'delete from user_sessions where user_id = ?', [userId]);
}

/** Deletes up to `limit` sessions that have ended by themselves; returns how many. For housekeeping. */
export async function forgetEndedSessions(database: Database, limit: number): Promise<number> {
  return await execute(
    database,
    `delete from user_sessions where id = any (array(
       select id from user_sessions where least(idle_until, expires_at) < now() limit ?))`,
    [limit],
  );
}
