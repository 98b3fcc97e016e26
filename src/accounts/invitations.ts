import type { Database, Transaction } from '../database/database.ts';
import {
  deleteInvitation,
  findOpenInvitation,
  type Invitation,
  insertInvitation,
  listInvitations,
  listTenantInvitations,
  takeInvitation,
} from '../database/invitations.ts';
import { deleteSessions } from '../database/user-sessions.ts';
import {
  findPasswordHash,
  findUserByEmail,
  insertUser,
  lockUser,
  replacePasswordHash,
} from '../database/users.ts';
import type { PortalRole } from '../domain/portal-role.ts';
import { newSecretToken, secretTokenHash } from '../domain/secret-token.ts';
import { AccountError } from './account-error.ts';
import { checkRowId } from './account-input.ts';
import { knownTenant } from './known-accounts.ts';
import { hashNewPassword } from './passwords.ts';
import { actorAt, beginSession, type Visitor } from './sign-in.ts';
import { recordUserChange } from './user-audit.ts';
import { type Authority, userUnder } from './user-authority.ts';
import { checkEmail, checkPersonName, checkRole } from './user-input.ts';

const LIFETIME_MS = 7 * 86_400_000;

type Tools = { database: Database };

/** `path` holds the token, which is shown this once: only its hash is stored. */
export type MadeInvitation = { email: string; role: PortalRole; path: string; expiresAt: Date };

/**
 * Invites somebody by a one-time link; an earlier link for the same address ends.
 * Throws AccountError: `invalid_value`, `unknown_tenant`, `user_exists`.
 */
export async function inviteUser(
  { database }: Tools,
  authority: Authority,
  given: { email: string; role: string; tenantId: string | null },
): Promise<MadeInvitation> {
  const email = checkEmail(given.email);
  const tenantId = authority.tenantId ?? given.tenantId;
  const role = checkRole(given.role, tenantId);
  if (tenantId !== null) await knownTenant(database, tenantId);
  return await database.transaction(async (trx) => {
    if ((await findUserByEmail(trx, email)) !== null) throw userExists();
    return await makeLink(trx, authority, { email, role, tenantId, userId: null });
  });
}

/** Makes a one-time link by which a user sets a new password. Throws AccountError: `unknown_user`, `user_disabled`. */
export async function makePasswordLink(
  { database }: Tools,
  authority: Authority,
  userId: string,
): Promise<MadeInvitation> {
  return await database.transaction(async (trx) => {
    const { email, role, tenantId, disabledAt } = await userUnder(trx, authority, userId);
    if (disabledAt !== null) {
      throw new AccountError('user_disabled', 'This user is disabled; enable the account first.');
    }
    return await makeLink(trx, authority, { email, role, tenantId, userId });
  });
}

async function makeLink(
  trx: Transaction,
  { actor }: Authority,
  invitation: { email: string; role: PortalRole; tenantId: string | null; userId: string | null },
): Promise<MadeInvitation> {
  const token = newSecretToken();
  const { email, role, tenantId, userId } = invitation;
  const expiresAt = await insertInvitation(trx, {
    ...invitation,
    tokenHash: secretTokenHash(token) as Buffer,
    invitedBy: actor.name,
    lifetimeMs: LIFETIME_MS,
  });
  const action = userId === null ? 'user.invited' : 'user.password_link_made';
  await recordUserChange(trx, actor, { tenantId, action, email, detail: { role } });
  return { email, role, path: `/portal/invitations/${token}`, expiresAt };
}

/** The open invitations of a tenant; of all, for an operator. */
export async function invitationsOf({ database }: Tools, tenantId: string | null): Promise<Invitation[]> {
  return tenantId === null
    ? await listInvitations(database)
    : await listTenantInvitations(database, tenantId);
}

/** Ends an invitation before it is used. Throws AccountError `unknown_invitation`. */
export async function withdrawInvitation(
  { database }: Tools,
  authority: Authority,
  id: string,
): Promise<void> {
  const rowId = checkRowId('The id of the invitation', id);
  await database.transaction(async (trx) => {
    const deleted = await deleteInvitation(trx, authority.tenantId, rowId);
    if (deleted === null) throw unknownInvitation();
    const { email, tenantId } = deleted;
    await recordUserChange(trx, authority.actor, { tenantId, action: 'user.invitation_withdrawn', email });
  });
}

/** What a link invites to. Throws AccountError `unknown_invitation`: never made, used, withdrawn or too old. */
export async function invitationBehind({ database }: Tools, token: string): Promise<Invitation> {
  const tokenHash = secretTokenHash(token);
  const invitation = tokenHash === null ? null : await findOpenInvitation(database, tokenHash);
  if (invitation === null) throw unknownInvitation();
  return invitation;
}

/**
 * Makes the user whom a link invites, or gives the one it is for a new password; ends the link and returns the token
 * of a new session. Throws AccountError: `unknown_invitation`, `user_exists`, `invalid_value`, `busy`.
 */
export async function acceptInvitation(
  tools: Tools,
  token: string,
  given: { name: string; password: string },
  visitor: Visitor,
): Promise<string> {
  const invitation = await invitationBehind(tools, token);
  const { email, tenantId, userId } = invitation;
  const name = userId === null ? await checkPersonName(given.name) : '';
  const passwordHash = await hashNewPassword(given.password, email);
  const id = await tools.database.transaction(async (trx) => {
    // The user before the link, in the order of those who change a user: two at once must not stop each other.
    const user = userId === null ? null : await lockUser(trx, userId);
    if (!(await takeInvitation(trx, invitation.id))) throw unknownInvitation();
    if (userId === null) return await makeInvitedUser(trx, invitation, { name, passwordHash }, visitor);
    if (user === null || user.disabledAt !== null) throw unknownInvitation();
    await setNewPassword(trx, userId, passwordHash);
    const actor = actorAt(email, visitor);
    await recordUserChange(trx, actor, { tenantId, action: 'user.password_changed', email });
    return userId;
  });
  return await beginSession(tools, { id, email, tenantId }, visitor, 'invitation');
}

/** The user whom an invitation that was just taken invites. Throws AccountError `user_exists`. */
export async function makeInvitedUser(
  trx: Transaction,
  { email, role, tenantId, invitedBy }: Invitation,
  { name, passwordHash }: { name: string; passwordHash: string | null },
  visitor: Visitor,
): Promise<string> {
  const userId = await insertUser(trx, { email, name, role, tenantId, passwordHash });
  if (userId === null) throw userExists();
  const actor = actorAt(email, visitor);
  const detail = { role, invitedBy };
  await recordUserChange(trx, actor, { tenantId, action: 'user.invitation_accepted', email, detail });
  return userId;
}

async function setNewPassword(trx: Transaction, userId: string, next: string): Promise<void> {
  await replacePasswordHash(trx, userId, { previous: await findPasswordHash(trx, userId), next });
  await deleteSessions(trx, userId);
}

function unknownInvitation(): AccountError {
  return new AccountError(
    'unknown_invitation',
    'This link does not work (any more): it was used, withdrawn, replaced, or is older than seven days.',
  );
}

function userExists(): AccountError {
  return new AccountError(
    'user_exists',
    'Somebody with this e-mail address has an account already.',
    'email',
  );
}
