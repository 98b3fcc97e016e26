import type { Actor } from '../../platform/audit/audit.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { RequestError } from '../../platform/request-input.ts';
import { emailOf } from '../mail/email-address.ts';
import { endPasswordLinks } from './invitation-store.ts';
import { hashWithSalt, isHashOutdated, passwordSaltOf } from './password-hash.ts';
import { checkPassword, hashNewPassword } from './passwords.ts';
import { recordUserChange } from './user-authority.ts';
import { addUserNotice } from './user-notices.ts';
import {
  type BegunBy,
  endSessions,
  firstPlaceOf,
  moveSession,
  noteSignIn,
  type OpenSession,
  type SessionClient,
  startSession,
} from './user-sessions.ts';
import {
  findPasswordHash,
  findUser,
  findUsersByEmail,
  notePasswordLink,
  replacePasswordHash,
  type SignInCandidate,
  signInCandidates,
  type User,
} from './user-store.ts';

type Tools = { database: Database };

export type Visitor = SessionClient & { requestId: string | null };

export type OwnSession = {
  id: string;
  viewer: Pick<
    OpenSession,
    | 'userId'
    | 'email'
    | 'tenantId'
    | 'passwordLinkBy'
    | 'begunBy'
    | 'hasSecondFactor'
    | 'provenAt'
    | 'expiresAt'
  >;
};

const WRONG_SIGN_IN = 'E-mail address or password is wrong.';

/**
 * Signs a user in by password: to the account of this address that the password opens, and to the one used last if it
 * opens several. Unknown address, wrong password, a disabled user and one without password are the same error after the
 * same time: what only some of them cause is given to `inBackground`. `isOnlyAccount` is false where the password may
 * have been guessed for another account. With `onlyUserId`, that account alone is tried.
 * Throws RequestError `wrong_sign_in`, `busy`.
 */
export async function signIn(
  tools: Tools & { inBackground: (work: Promise<void>) => void },
  given: { email: string; password: string; onlyUserId?: string | null; deviceId?: string | null },
  visitor: Visitor,
): Promise<{ token: string; userId: string; isOnlyAccount: boolean; opened: number; awaitsCode: boolean }> {
  const { database } = tools;
  const email = emailOf(given.email);
  const candidates = email === null ? [] : await signInCandidates(database, email);
  const { password, onlyUserId = null, deviceId = null } = given;
  const tried = onlyUserId === null ? candidates : candidates.filter(({ id }) => id === onlyUserId);
  const hashes = tried.map(({ passwordHash }) => passwordHash);
  const matching = await checkPassword(password, hashes, { ip: visitor.ip, deviceId });
  const opened = tried.filter(({ passwordHash }) => matching.includes(passwordHash));
  const [user] = opened;
  if (user === undefined) {
    if (email !== null) tools.inBackground(recordFailure(database, email, visitor));
    throw new RequestError('wrong_sign_in', WRONG_SIGN_IN);
  }
  const passwordHash = await renewedHash(database, user, password);
  const { passwordLinkBy } = user;
  const token = await beginSession(tools, user, visitor, { by: 'password', passwordLinkBy, passwordHash });
  const isOnlyAccount = candidates.length === 1;
  return { token, userId: user.id, isOnlyAccount, opened: opened.length, awaitsCode: user.hasSecondFactor };
}

async function renewedHash(
  database: Database,
  { id, email, passwordHash: previous }: SignInCandidate,
  password: string,
): Promise<string> {
  const salt = await passwordSaltOf(database, email);
  if (!isHashOutdated(previous, salt)) return previous;
  const next = await hashWithSalt(password, salt);
  await replacePasswordHash(database, id, { previous, next });
  return next;
}

/**
 * A failure against an unknown address is not written down: any visitor could fill the log. It
 * is for operators only: which account was meant is not known, and a tenant's log must not show other tenants' users.
 */
async function recordFailure(database: Database, email: string, visitor: Visitor): Promise<void> {
  const users = await findUsersByEmail(database, email);
  if (users.length === 0) return;
  const actor = { name: 'nobody', requestId: visitor.requestId, ip: visitor.ip };
  const detail = { disabled: users.every(({ disabledAt }) => disabledAt !== null) };
  const change = { tenantId: null, action: 'user.sign_in_failed', email, detail };
  await recordUserChange(database, actor, change);
}

/** How a session begins; a tenant that is left out is the one where the user was last. */
type Beginning = {
  by: BegunBy;
  tenantId?: string | null;
  passwordLinkBy?: string | null;
  /** The second factor was given, to the provider or in the session that this one follows. */
  hasSecondFactor?: boolean;
  provenAtMs?: number | null;
  endsBy?: Date | null;
  /** What the password opened: a change in the meantime ends this sign-in too. */
  passwordHash?: string | null;
  /** What the audit log says of it, where it is not `by`. */
  recordedBy?: BegunBy;
};

/** Begins the session of a user who has signed in. Throws RequestError `wrong_sign_in`: without a tenant, or the password has changed. */
export async function beginSession(
  tools: Tools,
  user: Pick<User, 'id' | 'email'>,
  visitor: Visitor,
  beginning: Beginning,
): Promise<string> {
  const {
    by,
    tenantId: wanted,
    passwordLinkBy = null,
    hasSecondFactor = false,
    provenAtMs = null,
    endsBy = null,
    passwordHash = null,
  } = beginning;
  return await tools.database.transaction(async (trx) => {
    const place = wanted === undefined ? await firstPlaceOf(trx, user.id) : { tenantId: wanted };
    if (place === null || !(await noteSignIn(trx, user.id, place.tenantId, passwordHash))) {
      throw new RequestError('wrong_sign_in', WRONG_SIGN_IN);
    }
    const { tenantId } = place;
    const token = await startSession(
      { database: trx },
      { userId: user.id, tenantId, passwordLinkBy, begunBy: by, hasSecondFactor, provenAtMs, endsBy },
      visitor,
    );
    const actor = { ...actorAt(user, visitor, tenantId === null), passwordLinkBy };
    const { email } = user;
    const detail = { by: beginning.recordedBy ?? by };
    await recordUserChange(trx, actor, { tenantId, action: 'user.signed_in', email, detail });
    if (passwordLinkBy !== null) {
      const notice = { kind: 'link_session', by: passwordLinkBy, ip: visitor.ip } as const;
      await addUserNotice(trx, user.id, notice);
    }
    return token;
  });
}

/** Moves a session to another tenant of its user, or with null to the operator's pages. Throws RequestError `unknown_tenant`. */
export async function switchTenant(
  { database }: Tools,
  { id, viewer }: OwnSession,
  tenantId: string | null,
  actor: Actor,
): Promise<void> {
  const { userId, email } = viewer;
  if (tenantId === viewer.tenantId) return;
  await database.transaction(async (trx) => {
    if (!(await noteSignIn(trx, userId, tenantId))) {
      throw new RequestError('unknown_tenant', 'You do not belong to this tenant.');
    }
    await moveSession(trx, id, tenantId);
    const by = { ...actor, isOperator: tenantId === null };
    await recordUserChange(trx, by, { tenantId, action: 'user.signed_in', email, detail: { by: 'switch' } });
  });
}

export async function signOut({ database }: Tools, session: OwnSession, actor: Actor): Promise<void> {
  const { userId, email, tenantId } = session.viewer;
  await database.transaction(async (trx) => {
    await endSessions(trx, userId, { id: session.id });
    await recordUserChange(trx, actor, { tenantId, action: 'user.signed_out', email });
  });
}

/**
 * Changes one's own password, ends all sessions and open links to set one, and returns the token of a new one. The mark
 * of a link that another user made stays on the session, and on the account unless the session is unmarked.
 * Throws RequestError: `wrong_password`, `invalid_value`, `busy`.
 */
export async function changePassword(
  tools: Tools,
  { viewer }: OwnSession,
  given: { current: string; next: string },
  visitor: Visitor,
  actor: Actor,
): Promise<string> {
  const { database } = tools;
  const { userId, email, tenantId, passwordLinkBy, begunBy, hasSecondFactor } = viewer;
  const previous = await checkOwnPassword(tools, userId, given.current);
  const next = await hashNewPassword(database, given.next, email);
  return await database.transaction(async (trx) => {
    if (!(await replacePasswordHash(trx, userId, { previous, next }))) throw wrongPassword();
    // A password that its maker changes is still not the owner's.
    if (passwordLinkBy === null) await notePasswordLink(trx, userId, null);
    await endPasswordLinks(trx, userId);
    await recordUserChange(trx, actor, { tenantId, action: 'user.password_changed', email });
    await endSessions(trx, userId);
    const begun = { userId, tenantId, passwordLinkBy, begunBy, hasSecondFactor };
    return await startSession({ database: trx }, begun, visitor);
  });
}

/** Returns the hash that the present password opens. Throws RequestError: `wrong_password`, `busy`. */
export async function checkOwnPassword(
  { database }: Tools,
  userId: string,
  password: string,
): Promise<string> {
  const [user, hash] = await Promise.all([findUser(database, userId), findPasswordHash(database, userId)]);
  const [opened] = await checkPassword(password, hash === null ? [] : [hash], { ip: `user ${userId}` });
  if (user === null || opened === undefined) throw wrongPassword();
  return opened;
}

function wrongPassword(): RequestError {
  return new RequestError('wrong_password', 'This is not your present password.', 'current');
}

/** A user as the audit log names them, before there is a session. */
export function actorAt(
  { id, email }: Pick<User, 'id' | 'email'>,
  { requestId, ip }: Visitor,
  isOperator = false,
): Actor {
  return { name: email, userId: id, isOperator, requestId, ip };
}
