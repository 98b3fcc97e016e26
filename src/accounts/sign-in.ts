import type { Database } from '../database/database.ts';
import { endLinks } from '../database/invitations.ts';
import type { SessionClient } from '../database/user-sessions.ts';
import {
  findPasswordHash,
  findUser,
  findUserByEmail,
  noteSignIn,
  replacePasswordHash,
  type User,
} from '../database/users.ts';
import { hashPassword, isHashOutdated } from '../domain/password-hash.ts';
import { AccountError } from './account-error.ts';
import type { Actor } from './audit.ts';
import { checkPassword, hashNewPassword } from './passwords.ts';
import { recordUserChange } from './user-audit.ts';
import { emailOf } from './user-input.ts';
import { endSession, replaceSessions, startSession } from './user-sessions.ts';

type Tools = { database: Database };

/** Where a request comes from: for the session and for the audit log. */
export type Visitor = SessionClient & { requestId: string | null };

const WRONG_SIGN_IN = 'E-mail address or password are wrong.';

/**
 * Signs somebody in by password and returns the token of a new session. Unknown address, wrong password, a disabled
 * user and one without password are the same error after the same time: what only some of them cause is given to
 * `inBackground`. Throws AccountError `wrong_sign_in`, `busy`.
 */
export async function signIn(
  tools: Tools & { inBackground: (work: Promise<void>) => void },
  given: { email: string; password: string },
  visitor: Visitor,
): Promise<string> {
  const { database } = tools;
  const email = emailOf(given.email);
  const user = email === null ? null : await findUserByEmail(database, email);
  const hash = user === null || user.disabledAt !== null ? null : user.passwordHash;
  const isRight = await checkPassword(given.password, hash);
  if (user === null || hash === null || !isRight) {
    tools.inBackground(recordFailure(database, { user, email }, visitor));
    throw new AccountError('wrong_sign_in', WRONG_SIGN_IN);
  }
  if (isHashOutdated(hash)) {
    const next = await hashPassword(given.password);
    await replacePasswordHash(database, user.id, { previous: hash, next });
  }
  return await beginSession(tools, user, visitor, 'password');
}

/** A failure against an address that nobody has is not written down: anybody could fill the log with what he likes. */
async function recordFailure(
  database: Database,
  { user, email }: { user: User | null; email: string | null },
  visitor: Visitor,
): Promise<void> {
  if (user === null || email === null) return;
  const actor = { name: 'nobody', requestId: visitor.requestId, ip: visitor.ip };
  const detail = { disabled: user.disabledAt !== null };
  await recordUserChange(database, actor, {
    tenantId: user.tenantId,
    action: 'user.sign_in_failed',
    email,
    detail,
  });
}

/** Begins a session of somebody who has shown who he is. */
export async function beginSession(
  tools: Tools,
  user: Pick<User, 'id' | 'email' | 'tenantId'>,
  visitor: Visitor,
  by: 'password' | 'oidc' | 'invitation' | 'set-up link',
): Promise<string> {
  const { tenantId, email } = user;
  return await tools.database.transaction(async (trx) => {
    const token = await startSession({ database: trx }, user.id, visitor);
    await noteSignIn(trx, user.id);
    await recordUserChange(trx, actorAt(email, visitor), {
      tenantId,
      action: 'user.signed_in',
      email,
      detail: { by },
    });
    return token;
  });
}

/** Ends a session because its user wants to. */
export async function signOut(
  { database }: Tools,
  session: { id: string; viewer: { userId: string; email: string; tenantId: string | null } },
  actor: Actor,
): Promise<void> {
  const { userId, email, tenantId } = session.viewer;
  await database.transaction(async (trx) => {
    await endSession({ database: trx }, userId, session.id);
    await recordUserChange(trx, actor, { tenantId, action: 'user.signed_out', email });
  });
}

/**
 * Changes one's own password, ends all sessions and open links to set one, and returns the token of a new one.
 * Throws AccountError: `wrong_password`, `invalid_value`, `busy`.
 */
export async function changePassword(
  tools: Tools,
  userId: string,
  given: { current: string; next: string },
  visitor: Visitor,
): Promise<string> {
  const { database } = tools;
  const [user, previous] = await Promise.all([
    findUser(database, userId),
    findPasswordHash(database, userId),
  ]);
  const isRight = await checkPassword(given.current, previous);
  if (user === null || !isRight) throw wrongPassword();
  const next = await hashNewPassword(given.next, user.email);
  const { email, tenantId } = user;
  return await database.transaction(async (trx) => {
    if (!(await replacePasswordHash(trx, userId, { previous, next }))) throw wrongPassword();
    await endLinks(trx, { userId, madeBy: null });
    await recordUserChange(trx, actorAt(email, visitor), {
      tenantId,
      action: 'user.password_changed',
      email,
    });
    return await replaceSessions({ database: trx }, userId, visitor);
  });
}

function wrongPassword(): AccountError {
  return new AccountError('wrong_password', 'This is not your present password.', 'current');
}

/** Somebody as the audit log names him, before there is a session. */
export function actorAt(email: string, { requestId, ip }: Visitor): Actor {
  return { name: email, requestId, ip };
}
