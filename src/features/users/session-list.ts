import type { Actor } from '../../platform/audit/audit.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { checkRowId, RequestError } from '../../platform/request-input.ts';
import type { OwnSession } from './sign-in.ts';
import {
  type Authority,
  lockedMember,
  lockedUser,
  recordAccountChange,
  recordUserChange,
  refuseOneself,
} from './user-authority.ts';
import { addUserNotice } from './user-notices.ts';
import { endSessions, listSessions, type SessionSummary } from './user-sessions.ts';
import type { User } from './user-store.ts';

type Tools = { database: Database };

/** Ends one's own session, or without an id all but the present one; returns how many. Throws RequestError `unknown_session`. */
export async function endOwnSessions(
  { database }: Tools,
  { id: present, viewer: { userId, email, tenantId } }: OwnSession,
  sessionId: string | null,
  actor: Actor,
): Promise<number> {
  const which = sessionId === null ? { but: present } : { id: checkRowId(SESSION_ID, sessionId) };
  return await database.transaction(async (trx) => {
    const ended = await endSessions(trx, userId, which);
    if (ended === 0 && sessionId !== null) throw unknownSession();
    const detail = { sessions: ended };
    if (ended > 0)
      await recordUserChange(trx, actor, { tenantId, action: 'user.sessions_ended', email, detail });
    return ended;
  });
}

/** A tenant's administrator sees the sessions that are in the tenant. Throws RequestError `unknown_user`. */
export async function sessionsUnder(
  { database }: Tools,
  authority: Authority,
  userId: string,
): Promise<{ user: User; sessions: SessionSummary[] }> {
  const { tenantId } = authority;
  return await database.transaction(async (trx) => {
    const user = await administered(trx, authority, userId);
    return { user, sessions: await listSessions(trx, user.id, tenantId) };
  });
}

/**
 * Ends one session of a user, or with null all; of a tenant's administrator those that are in the tenant. The user is
 * notified at the next sign-in. Returns how many. Throws RequestError: `unknown_user`, `unknown_session`, `own_account`.
 */
export async function endSessionsUnder(
  { database }: Tools,
  authority: Authority,
  userId: string,
  sessionId: string | null,
): Promise<number> {
  refuseOneself(authority, userId);
  const { actor, tenantId } = authority;
  const which = sessionId === null ? {} : { id: checkRowId(SESSION_ID, sessionId) };
  return await database.transaction(async (trx) => {
    const user = await administered(trx, authority, userId);
    const { id, email } = user;
    const ended = await endSessions(trx, id, { ...which, tenantId });
    if (ended === 0 && sessionId !== null) throw unknownSession();
    if (ended === 0) return 0;
    await addUserNotice(trx, id, { kind: 'sessions_ended', by: actor.name, ip: null });
    const change = { action: 'user.sessions_ended', detail: { sessions: ended } };
    if (tenantId === null) await recordAccountChange(trx, actor, user, change);
    else await recordUserChange(trx, actor, { tenantId, email, ...change });
    return ended;
  });
}

async function administered(trx: Transaction, { tenantId }: Authority, userId: string): Promise<User> {
  if (tenantId === null) return await lockedUser(trx, userId);
  return (await lockedMember(trx, tenantId, userId)).user;
}

const SESSION_ID = 'The id of the session';

function unknownSession(): RequestError {
  return new RequestError('unknown_session', 'This session has ended already.');
}
