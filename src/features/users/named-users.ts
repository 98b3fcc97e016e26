import type { Actor } from '../../platform/audit/audit.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import { RequestError } from '../../platform/request-input.ts';
import { checkReference } from '../accounts/external-tenants.ts';
import { isSuspended, SUSPENDED } from '../accounts/suspension.ts';
import { checkEmail } from '../mail/email-address.ts';
import type { Mailer } from '../mail/mails.ts';
import { type Invitation, listInvitations } from './invitation-store.ts';
import { inviteUser, type MadeInvitation, withdrawInvitation } from './invitations.ts';
import { changeRole, removeMember } from './members.ts';
import { listMembers, type Member, setMemberRef } from './memberships.ts';
import { recordUserChange, type TenantAuthority } from './user-authority.ts';
import { checkRole } from './user-input.ts';
import type { TenantRole } from './user-store.ts';

/** All of it in one transaction, one change of the tenant at a time. */
type Tools = { database: Transaction; actor: Actor; mailer: Mailer };

/** A user of a tenant, or who is invited to be one, as the operator's program sees them. */
export type NamedUser = {
  /** Null: the program has not named the user. */
  userRef: string | null;
  /** Null: the invitation is not accepted. */
  userId: string | null;
  email: string;
  role: TenantRole;
  state: 'active' | 'disabled' | 'invited';
  lastSignInAt: Date | null;
  /** When the invitation ends. */
  inviteEndsAt: Date | null;
};

export async function listNamedUsers(
  { database }: Pick<Tools, 'database'>,
  tenantId: string,
): Promise<NamedUser[]> {
  const members = await listMembers(database, tenantId);
  return [...members.map(ofMember), ...(await openInvitations(database, tenantId)).map(ofInvitation)];
}

/** Without links for a new password. */
async function openInvitations(database: Transaction, tenantId: string): Promise<Invitation[]> {
  return (await listInvitations(database, tenantId)).filter(({ role }) => role !== null);
}

function ofMember({ id, ref, email, role, disabledAt, isLocked, lastSignInAt }: Member): NamedUser {
  const state = disabledAt !== null || isLocked ? 'disabled' : 'active';
  return { userRef: ref, userId: id, email, role, state, lastSignInAt, inviteEndsAt: null };
}

function ofInvitation({ ref, email, role, expiresAt }: Invitation): NamedUser {
  const ofTenant = role === 'admin' ? 'admin' : 'member';
  const none = { userId: null, lastSignInAt: null };
  return { userRef: ref, email, role: ofTenant, state: 'invited', inviteEndsAt: expiresAt, ...none };
}

/** `invitation`: it was made by this call; its link is shown this once, unless it was mailed. */
export type PutUser = NamedUser & { invitation: MadeInvitation | null };

/**
 * Invites a user under the program's name, once; of a user that there is, changes the role. A member whom the program has not named
 * gets the name. Throws RequestError: `invalid_value`, `tenant_suspended`, `user_differs`, `user_exists`, `too_many_links`.
 */
export async function putUser(
  tools: Tools,
  tenantId: string,
  userRef: string,
  given: { email: string; role: string },
): Promise<PutUser> {
  const { database, actor, mailer } = tools;
  const ref = checkReference('userRef', userRef);
  const email = checkEmail(given.email);
  const role = checkRole(given.role, tenantId);
  const authority = authorityOf(actor, tenantId);
  const member = await memberFor(tools, tenantId, { ref, email });
  if (member !== null) {
    if (member.role !== role) {
      await refuseSuspendedTenant(database, tenantId);
      await changeRole({ database }, authority, member.id, role);
    }
    return { ...(await namedUser(database, tenantId, ref)), invitation: null };
  }
  const open = (await openInvitations(database, tenantId)).find((invitation) => invitation.ref === ref);
  if (open?.email === email && open.role === role) return { ...ofInvitation(open), invitation: null };
  await refuseSuspendedTenant(database, tenantId);
  if (open !== undefined) await withdrawInvitation({ database }, authority, open.id);
  const invitation = await inviteUser({ database, mailer }, authority, { email, role, tenantId, ref });
  return { ...(await namedUser(database, tenantId, ref)), invitation };
}

/** The member of this name, or the one with this address, who gets the name; null: there is neither. */
async function memberFor(
  { database, actor }: Tools,
  tenantId: string,
  { ref, email }: { ref: string; email: string },
): Promise<Member | null> {
  const members = await listMembers(database, tenantId);
  const named = members.find((member) => member.ref === ref);
  if (named !== undefined && named.email !== email)
    throw new RequestError('user_differs', `The user ${ref} has another e-mail address.`, 'email');
  const [known, ...others] = members.filter((member) => member.email === email);
  if (named !== undefined || known === undefined) return named ?? null;
  if (known.ref !== null || others.length > 0)
    throw new RequestError(
      'user_exists',
      'The tenant has a user with this address under another name.',
      'email',
    );
  await setMemberRef(database, { userId: known.id, tenantId, ref });
  const detail = { userId: known.id, userRef: ref };
  await recordUserChange(database, actor, { tenantId, action: 'user.named', email, detail });
  return { ...known, ref };
}

/** Sessions end at once, and an invitation that is open. Throws RequestError: `invalid_value`, `unknown_user`. */
export async function deleteNamedUser(tools: Tools, tenantId: string, userRef: string): Promise<NamedUser> {
  const { database, actor } = tools;
  const user = await namedUser(database, tenantId, checkReference('userRef', userRef));
  const authority = authorityOf(actor, tenantId);
  if (user.userId !== null) await removeMember({ database }, authority, user.userId);
  for (const { id, ref } of await openInvitations(database, tenantId))
    if (ref === userRef) await withdrawInvitation({ database }, authority, id);
  return user;
}

async function namedUser(database: Transaction, tenantId: string, userRef: string): Promise<NamedUser> {
  const user = (await listNamedUsers({ database }, tenantId)).find((one) => one.userRef === userRef);
  if (user === undefined) throw new RequestError('unknown_user', 'The tenant has no such user.');
  return user;
}

function authorityOf(actor: Actor, tenantId: string): TenantAuthority {
  return { actor, tenantId, userId: null };
}

async function refuseSuspendedTenant(database: Transaction, tenantId: string): Promise<void> {
  if (await isSuspended(database, tenantId)) throw new RequestError('tenant_suspended', SUSPENDED);
}
