import { newSecretToken, secretTokenHash } from '../platform/crypto/secret-token.ts';
import type { Database } from '../platform/postgres/database.ts';
import { checkRowId, RequestError } from '../platform/request-input.ts';
import {
  deleteSession,
  insertSession,
  listSessions,
  noteSessionUse,
  type OpenSession,
  type SessionClient,
  type SessionSummary,
} from './user-session-store.ts';

const HOUR_MS = 3_600_000;

/** A session ends after this time without use, and after that time in any case. */
const IDLE_MS = 12 * HOUR_MS;
const LIFETIME_MS = 7 * 24 * HOUR_MS;
const MAX_USER_AGENT_CHARS = 300;

type Tools = { database: Database };

/** Begins a session and returns its token, which is in the cookie and nowhere else. */
export async function startSession(
  { database }: Tools,
  given: { userId: string; tenantId: string | null; passwordLinkBy: string | null },
  client: SessionClient,
): Promise<string> {
  const token = newSecretToken();
  const tokenHash = secretTokenHash(token);
  if (tokenHash === null) throw new Error('a new token is malformed');
  await insertSession(database, {
    ...given,
    tokenHash,
    csrfToken: newSecretToken(),
    idleMs: IDLE_MS,
    lifetimeMs: LIFETIME_MS,
    ip: client.ip,
    userAgent: storable(client.userAgent),
  });
  return token;
}

/** The session that a token opens, found by the token's hash; null: it has ended, or never was. */
export async function openSession(
  find: (tokenHash: Buffer) => Promise<OpenSession | null>,
  token: string,
): Promise<OpenSession | null> {
  const tokenHash = secretTokenHash(token);
  return tokenHash === null ? null : await find(tokenHash);
}

/** Notes that a session is in use. */
export async function noteUse({ database }: Tools, session: OpenSession): Promise<void> {
  if (session.isUseStale) await noteSessionUse(database, session.id, IDLE_MS);
}

/** Where a user is signed in. */
export async function sessionsOf({ database }: Tools, userId: string): Promise<SessionSummary[]> {
  return await listSessions(database, userId);
}

/** Ends one session of a user. Throws RequestError `unknown_session`. */
export async function endSession({ database }: Tools, userId: string, sessionId: string): Promise<void> {
  const id = checkRowId('The id of the session', sessionId);
  if (await deleteSession(database, userId, id)) return;
  throw new RequestError('unknown_session', 'This session has ended already.');
}

function storable(userAgent: string | null): string | null {
  return userAgent === null
    ? null
    : userAgent
        .slice(0, MAX_USER_AGENT_CHARS)
        .replace(/\p{Cc}/gu, ' ')
        .toWellFormed();
}
