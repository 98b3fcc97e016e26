import type { Database } from '../platform/postgres/database.ts';
import { RequestError } from '../platform/request-input.ts';
import { type Invitation, takeInvitation } from './invitation-store.ts';
import { type LinkTools, type MadeInvitation, makeLink, unknownInvitation } from './invitations.ts';
import { hashNewPassword } from './passwords.ts';
import type { Visitor } from './sign-in.ts';
import { type Authority, lockedMember, lockedUser, recordUserChange } from './user-authority.ts';
import { addUserNotice, deleteSessions } from './user-sessions.ts';
import { findPasswordHash, lockUser, notePasswordLink, replacePasswordHash } from './user-store.ts';

type Tools = { database: Database };

/**
 * Makes a one-time link by which a user sets a new password. Its maker can use it: so a tenant's administrator
 * gets one only for an account that is of use in this tenant alone and by password alone.
 * Throws RequestError: `unknown_user`, `user_disabled`, `operators_only`.
 */
export async function makePasswordLink(
  { database, mailer = null }: LinkTools,
  authority: Authority,
  userId: string,
): Promise<MadeInvitation> {
  const { actor, tenantId } = authority;
  return await database.transaction(async (trx) => {
    const { user, member } =
      tenantId === null
        ? { user: await lockedUser(trx, userId), member: null }
        : await lockedMember(trx, tenantId, userId);
    if (user.disabledAt !== null || (member !== null && member.disabledAt !== null)) {
      throw new RequestError('user_disabled', 'This user is disabled; enable the account first.');
    }
    const isElsewhere = user.isOperator || user.memberships.length > 1 || user.identities > 0;
    if (tenantId !== null && isElsewhere) {
      throw new RequestError('operators_only', 'For this account, only an operator can make such a link.');
    }
    const { email } = user;
    const link = { email, role: null, tenantId, userId: user.id, businessName: null };
    const made = await makeLink(trx, authority, link, mailer);
    const tenants = user.memberships.map((one) => one.tenantId);
    for (const concerned of tenants.length === 0 ? [null] : tenants) {
      await recordUserChange(trx, actor, { tenantId: concerned, action: 'user.password_link_made', email });
    }
    return made;
  });
}

/**
 * Gives the user whom a link is for a new password, and ends all sessions, without signing in. The user
 * sees who made the link, unless it came by e-mail, until another password is chosen. Throws RequestError: `unknown_invitation`,
 * `invalid_value`, `busy`.
 */
export async function setPasswordByLink(
  { database }: Tools,
  { id, email, userId, makerId, invitedBy, isMailed }: Invitation,
  password: string,
  { requestId, ip }: Visitor,
): Promise<void> {
  if (userId === null) throw unknownInvitation();
  const next = await hashNewPassword(database, password, email);
  await database.transaction(async (trx) => {
    // The user before the link, in the order of those who change a user: two at once must not stop each other.
    const user = await lockUser(trx, userId);
    if (!(await takeInvitation(trx, id)) || user === null || user.disabledAt !== null)
      throw unknownInvitation();
    await replacePasswordHash(trx, userId, { previous: await findPasswordHash(trx, userId), next });
    await notePasswordLink(trx, userId, makerId === userId || isMailed ? null : invitedBy);
    await deleteSessions(trx, userId);
    await addUserNotice(trx, userId, { kind: 'password_by_link', by: invitedBy, ip });
    // Who it was is not known: a link shows only who has it.
    const actor = { name: 'password link', requestId, ip };
    const tenants = user.memberships.map(({ tenantId }) => tenantId);
    for (const tenantId of tenants.length === 0 ? [null] : tenants) {
      const detail = { linkMadeBy: invitedBy };
      await recordUserChange(trx, actor, { tenantId, action: 'user.password_changed', email, detail });
    }
  });
}
