import type { Actor } from '../../platform/audit/audit.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { execute } from '../../platform/postgres/sql.ts';
import { checkDescription, RequestError } from '../../platform/request-input.ts';
import { emailOf } from '../mail/email-address.ts';
import { type Invitation, openInvitationsOf } from './invitation-store.ts';
import { join, refuseForeignPassword, unknownInvitation } from './invitations.ts';
import { beginSession, checkOwnPassword, type OwnSession, type Visitor } from './sign-in.ts';
import { recordUserChange, refuseMarkedSession } from './user-authority.ts';
import { findUserOfIdentity, type Identity, insertIdentity } from './user-identities.ts';
import { addUserNotice } from './user-notices.ts';
import { firstPlaceOf, noteProof } from './user-sessions.ts';
import { findUser, insertUser, lockUser, type User } from './user-store.ts';

type Tools = { database: Database };

/** How far the provider's clock may be off. */
const CLOCK_SKEW_MS = 60_000;

export type ProvenPerson = Identity &
  ProofAtProvider & { email: string | null; isEmailVerified: boolean; name: string | null };

type ProofAtProvider = {
  /** The provider says that it asked for more than one factor (`amr` holds `mfa`, RFC 8176). */
  hasSecondFactor: boolean;
  /** When it was, milliseconds since 1970; null: the provider does not say. */
  provenAtMs: number | null;
};

/**
 * Signs in whom a provider vouches for, and returns the token of a new session; null: this person has no account. An
 * account is known by issuer and subject only, never by its address: who has the password of an account need not
 * own the address that it has. Throws RequestError `not_invited`: the account is locked.
 */
export async function signInProven(
  tools: Tools,
  person: Identity & ProofAtProvider,
  visitor: Visitor,
): Promise<string | null> {
  const { hasSecondFactor, provenAtMs } = person;
  const user = await userOf(tools, person);
  if (user === null || (!user.isOperator && user.memberships.length === 0)) return null;
  if ((await firstPlaceOf(tools.database, user.id)) === null) throw notInvited();
  return await beginSession(tools, user, visitor, { by: 'oidc', hasSecondFactor, provenAtMs });
}

async function userOf({ database }: Tools, person: Identity): Promise<User | null> {
  const userId = await findUserOfIdentity(database, person);
  return userId === null ? null : await findUser(database, userId);
}

/** The pending invitations of the address that the provider has verified, but for those into tenants of this person. */
export async function invitationsForProven(tools: Tools, person: ProvenPerson): Promise<Invitation[]> {
  const email = person.isEmailVerified && person.email !== null ? emailOf(person.email) : null;
  if (email === null) return [];
  const [invitations, user] = await Promise.all([
    openInvitationsOf(tools.database, email),
    userOf(tools, person),
  ]);
  return invitations.filter(({ tenantId }) =>
    tenantId === null
      ? user?.isOperator !== true
      : !user?.memberships.some((membership) => membership.tenantId === tenantId),
  );
}

/**
 * Accepts one of the invitations of a proven person, with the account of this identity or a new one, and returns the
 * token of a new session. Throws RequestError: `unknown_invitation`, `user_exists`, `password_not_own`, `unknown_user`.
 */
export async function joinProven(
  tools: Tools,
  person: ProvenPerson,
  invitationId: string,
  visitor: Visitor,
): Promise<string> {
  const invitations = await invitationsForProven(tools, person);
  const invitation = invitations.find(({ id }) => id === invitationId);
  if (invitation === undefined) throw unknownInvitation();
  const { email, tenantId } = invitation;
  const user = await tools.database.transaction(async (trx) => {
    const knownId = await findUserOfIdentity(trx, person);
    const known = knownId === null ? null : await lockUser(trx, knownId);
    if (known !== null) refuseForeignPassword(known);
    const name = personName(person.name) ?? email;
    const made = { email, name, isOperator: false, passwordHash: null };
    const joined = known ?? { id: await insertUser(trx, made), email };
    if (known === null && !(await insertIdentity(trx, joined.id, person))) throw unknownInvitation();
    await join(trx, joined, invitation, visitor);
    return joined;
  });
  const { hasSecondFactor, provenAtMs } = person;
  return await beginSession(tools, user, visitor, { by: 'oidc', tenantId, hasSecondFactor, provenAtMs });
}

/**
 * Makes a person at a provider able to sign in to the account of a session, whose password was given. Who made a link
 * for that password must not keep a way in. Throws RequestError: `identity_taken`, `password_not_own`, `unknown_user`.
 */
export async function linkIdentity(
  { database }: Tools,
  { viewer }: OwnSession,
  person: ProvenPerson,
  actor: Actor,
): Promise<void> {
  const { userId, email, tenantId } = viewer;
  refuseMarkedSession(viewer);
  await database.transaction(async (trx) => {
    refuseForeignPassword(await lockUser(trx, userId));
    if (!(await insertIdentity(trx, userId, person))) {
      throw new RequestError(
        'identity_taken',
        'This person at your identity provider signs in to another account here, or your account is another person there.',
      );
    }
    const detail = { issuer: person.issuer };
    await recordUserChange(trx, actor, { tenantId, action: 'user.identity_linked', email, detail });
    await addUserNotice(trx, userId, { kind: 'identity_linked', by: person.email, ip: actor.ip });
  });
}

/** Throws RequestError `not_proven`: another person, or not after `sinceMs` (milliseconds since 1970). */
export async function proveAtProvider(
  { database }: Tools,
  { id, viewer }: OwnSession,
  person: Identity & ProofAtProvider,
  sinceMs: number,
): Promise<void> {
  if ((await findUserOfIdentity(database, person)) !== viewer.userId) {
    throw new RequestError(
      'not_proven',
      'At your identity provider you are another person than the one who is signed in here.',
    );
  }
  if (person.provenAtMs === null || person.provenAtMs < sinceMs - CLOCK_SKEW_MS) {
    throw new RequestError(
      'not_proven',
      'Your identity provider did not say that it asked you again. Sign out and in, or set up a second factor under your account.',
    );
  }
  await noteProof(database, id);
}

/** Ends what `linkIdentity` began; the account keeps its password. Throws RequestError: `wrong_password`, `busy`, `password_not_own`. */
export async function unlinkIdentity(
  tools: Tools,
  { viewer }: OwnSession,
  password: string,
  actor: Actor,
): Promise<void> {
  const { userId, email, tenantId } = viewer;
  refuseMarkedSession(viewer);
  await checkOwnPassword(tools, userId, password);
  await tools.database.transaction(async (trx) => {
    const removed = await execute(trx, 'delete from user_identities where user_id = :userId', { userId });
    if (removed === 0) return;
    await recordUserChange(trx, actor, { tenantId, action: 'user.identity_unlinked', email });
  });
}

/** A name that cannot be shown is left out; it refuses no sign-in. */
function personName(text: string | null): string | null {
  try {
    return checkDescription('The name', text ?? '') || null;
  } catch {
    return null;
  }
}

export function notInvited(): RequestError {
  return new RequestError(
    'not_invited',
    'Your identity provider knows you, but this e-mail address has no invitation here. Ask for an invitation.',
  );
}
