import type { Database } from '../../platform/postgres/database.ts';
import { RequestError } from '../../platform/request-input.ts';
import { type Invitation, takeInvitation } from './invitation-store.ts';
import { type LinkTools, type MadeInvitation, makeLink, unknownInvitation } from './invitations.ts';
import { countLink } from './link-limits.ts';
import { hashNewPassword } from './passwords.ts';
import type { Visitor } from './sign-in.ts';
import {
  type Authority,
  lockedMember,
  lockedUser,
  recordAccountChange,
  refuseMarkedSession,
  refuseOneself,
} from './user-authority.ts';
import { addUserNotice } from './user-notices.ts';
import { endSessions } from './user-sessions.ts';
import { findPasswordHash, lockUser, notePasswordLink, replacePasswordHash } from './user-store.ts';

type Tools = { database: Database };

/**
 * Makes a one-time link by which a user sets a new password. Its maker can use it: so a tenant's administrator
 * gets one only for an account that is of use in this tenant alone and by password alone.
 * Throws RequestError: `unknown_user`, `user_disabled`, `operators_only`, `password_not_own`, `too_many_links`.
 */
export async function makePasswordLink(
  { database, mailer = null }: LinkTools,
  authority: Authority,
  userId: string,
): Promise<MadeInvitation> {
  const { actor, tenantId } = authority;
  // A link for oneself ends the mark, so a marked session makes none.
  if (authority.userId === userId) refuseMarkedSession(actor);
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
    await countLink(trx, tenantId, email);
    const link = { email, role: null, tenantId, userId: user.id, businessName: null };
    const made = await makeLink(trx, authority, link, mailer);
    await recordAccountChange(trx, actor, user, { action: 'user.password_link_made' });
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
    await endSessions(trx, userId);
    await addUserNotice(trx, userId, { kind: 'password_by_link', by: invitedBy, ip });
    // Who it was is not known: a link shows only who has it.
    const actor = { name: 'password link', requestId, ip };
    const change = { action: 'user.password_changed', detail: { linkMadeBy: invitedBy } };
    await recordAccountChange(trx, actor, user, change);
  });
}

/**
 * Ends the mark of a link that was shown to its maker: an operator has made sure that the owner chose the present
 * password. All sessions of the user end, and the user is notified. Throws RequestError: `unknown_user`, `own_account`,
 * `password_own`, `own_link`, `password_not_own`.
 */
export async function confirmPassword({ database }: Tools, authority: Authority, id: string): Promise<void> {
  const { actor, userId: operatorId } = authority;
  refuseOneself(authority, id);
  refuseMarkedSession(actor);
  await database.transaction(async (trx) => {
    const user = await lockedUser(trx, id);
    const by = user.passwordLinkBy;
    if (by === null) throw new RequestError('password_own', `The password of ${user.email} is not marked.`);
    if (operatorId !== null && by === actor.name) {
      throw new RequestError('own_link', 'You made the link for this password. Ask another operator.');
    }
    await notePasswordLink(trx, user.id, null);
    await endSessions(trx, user.id);
    await addUserNotice(trx, user.id, { kind: 'password_confirmed', by: actor.name, ip: actor.ip });
    const change = { action: 'user.password_confirmed', detail: { linkMadeBy: by } };
    await recordAccountChange(trx, actor, user, change);
  });
}
