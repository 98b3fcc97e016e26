import { newSecretToken, secretTokenHash } from '../../platform/crypto/secret-box.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { checkRowId, RequestError } from '../../platform/request-input.ts';
import { knownTenant } from '../accounts/accounts.ts';
import { brandOf } from '../accounts/brands.ts';
import { checkEmail } from '../mail/email-address.ts';
import { type Mailer, queueMail } from '../mail/mails.ts';
import {
  deleteInvitation,
  endPasswordLinks,
  findOpenInvitation,
  type Invitation,
  insertInvitation,
  takeInvitation,
} from './invitation-store.ts';
import { countLink } from './link-limits.ts';
import { linkMail } from './link-mails.ts';
import { hasMember, insertMembership } from './memberships.ts';
import { hashNewPassword } from './passwords.ts';
import { actorAt, beginSession, type OwnSession, type Visitor } from './sign-in.ts';
import { type Authority, recordUserChange, refuseMarkedSession } from './user-authority.ts';
import { checkPersonName, checkRole, type PortalRole } from './user-input.ts';
import { insertUser, lockUser, lockUserByHash, makeOperator, type User } from './user-store.ts';

const DAY_MS = 86_400_000;

/** A link for a new password opens an account that there is. */
const LIFETIME_MS = { invitation: 7 * DAY_MS, password: DAY_MS };

type Tools = { database: Database };

/** With a mailer, links go to their address by e-mail. */
export type LinkTools = Tools & { mailer?: Mailer };

/**
 * `path` holds the token, of which only the hash is stored. It is shown this once, unless it `isMailed`: then only the
 * owner of the address may see it. A link for a new password has no role.
 */
export type MadeInvitation = {
  email: string;
  role: PortalRole | null;
  path: string;
  isMailed: boolean;
  expiresAt: Date;
};

/**
 * Invites a user by a one-time link; an earlier link of the tenant for the same address ends. Whether the address has
 * an account elsewhere makes no difference. Throws RequestError: `invalid_value`, `unknown_tenant`, `user_exists`,
 * `too_many_links`.
 */
export async function inviteUser(
  { database, mailer = null }: LinkTools,
  authority: Authority,
  given: { email: string; role: string; tenantId: string | null; ref?: string },
): Promise<MadeInvitation> {
  const email = checkEmail(given.email);
  const tenantId = authority.tenantId ?? given.tenantId;
  const role = checkRole(given.role, tenantId);
  const businessName = tenantId === null ? null : (await knownTenant(database, tenantId)).businessName;
  return await database.transaction(async (trx) => {
    await refuseMember(trx, tenantId, email);
    await countLink(trx, authority.tenantId, email);
    const link = { email, role, tenantId, userId: null, businessName, ref: given.ref ?? null };
    const made = await makeLink(trx, authority, link, mailer);
    const detail = { role, ...ofRef(link.ref) };
    await recordUserChange(trx, authority.actor, { tenantId, action: 'user.invited', email, detail });
    return made;
  });
}

/** What the operator's program calls the user, for its feed. */
function ofRef(userRef: string | null): { userRef?: string } {
  return userRef === null ? {} : { userRef };
}

export async function makeLink(
  trx: Transaction,
  { actor, userId: makerId }: Authority,
  {
    businessName,
    ...link
  }: Pick<Invitation, 'email' | 'role' | 'tenantId' | 'userId' | 'businessName'> & { ref?: string | null },
  mailer: Mailer,
): Promise<MadeInvitation> {
  const token = newSecretToken();
  const expiresAt = await insertInvitation(trx, {
    ref: null,
    ...link,
    tokenHash: secretTokenHash(token) as Buffer,
    invitedBy: actor.name,
    makerId,
    isMailed: mailer !== null,
    lifetimeMs: link.userId === null ? LIFETIME_MS.invitation : LIFETIME_MS.password,
  });
  const { email, role, userId } = link;
  const path = `/portal/invitations/${token}`;
  if (mailer !== null) {
    const product = (await brandOf(trx, link.tenantId)).name ?? 'Heliograph';
    // People know the operator's program by its product.
    const by = actor.isPlatformKey === true ? product : actor.name;
    const about = { role, businessName, product, by, expiresAt, url: `${mailer.publicUrl}${path}` };
    const kind = role === null ? ('password_link' as const) : ('invitation' as const);
    await queueMail(trx, mailer, { kind, userId, recipient: email, ...linkMail(about) });
  }
  return { email, role, path, isMailed: mailer !== null, expiresAt };
}

/** Ends an invitation before it is used. Throws RequestError `unknown_invitation`. */
export async function withdrawInvitation(
  { database }: Tools,
  authority: Authority,
  id: string,
): Promise<string> {
  const rowId = checkRowId('The id of the invitation', id);
  return await database.transaction(async (trx) => {
    const deleted = await deleteInvitation(trx, authority.tenantId, rowId);
    if (deleted === null) throw unknownInvitation();
    const { email, tenantId, ref } = deleted;
    const change = { tenantId, action: 'user.invitation_withdrawn', email, detail: ofRef(ref) };
    await recordUserChange(trx, authority.actor, change);
    return email;
  });
}

/** What a link is for. Throws RequestError `unknown_invitation`: never made, used, withdrawn or too old. */
export async function invitationBehind({ database }: Tools, token: string): Promise<Invitation> {
  const tokenHash = secretTokenHash(token);
  const invitation = tokenHash === null ? null : await findOpenInvitation(database, tokenHash);
  if (invitation === null) throw unknownInvitation();
  return invitation;
}

/**
 * Accepts an invitation with a password: with a new account, or with the one that this password opens already. Returns
 * the token of a new session. Throws RequestError: `unknown_invitation`, `user_exists`, `second_factor_due`,
 * `invalid_value`, `busy`.
 */
export async function acceptInvitation(
  tools: Tools,
  invitation: Invitation,
  given: { name: string; password: string },
  visitor: Visitor,
): Promise<string> {
  const { email, tenantId } = invitation;
  const name = await checkPersonName(given.name);
  const passwordHash = await hashNewPassword(tools.database, given.password, email);
  const id = await tools.database.transaction(async (trx) => {
    const known = await lockUserByHash(trx, email, passwordHash);
    if (known?.hasSecondFactor) throw signInFirst();
    const userId = known?.id ?? (await insertUser(trx, { email, name, isOperator: false, passwordHash }));
    await join(trx, { id: userId, email }, invitation, visitor);
    return userId;
  });
  return await beginSession(tools, { id, email }, visitor, { by: 'invitation', tenantId, passwordHash });
}

/**
 * Accepts an invitation with the account of a session, which begins again in the tenant; returns its token. The link
 * proves nothing about who is there: the last proof and the end of the session stay as they were.
 * Throws RequestError: `unknown_invitation`, `another_address`, `user_exists`, `password_not_own`.
 */
export async function joinWithAccount(
  tools: Tools,
  invitation: Invitation,
  { viewer }: OwnSession,
  visitor: Visitor,
): Promise<string> {
  const { userId: id, passwordLinkBy, begunBy: by, hasSecondFactor, provenAt, expiresAt } = viewer;
  const { email, tenantId } = invitation;
  if (viewer.email !== email || invitation.userId !== null) {
    throw new RequestError('another_address', `This invitation is for ${email}; sign out to accept it.`);
  }
  refuseMarkedSession(viewer);
  await tools.database.transaction(async (trx) => {
    refuseForeignPassword(await lockUser(trx, id));
    await join(trx, { id, email }, invitation, visitor);
  });
  const followed = { by, passwordLinkBy, hasSecondFactor, provenAtMs: provenAt.getTime(), endsBy: expiresAt };
  const beginning = { ...followed, tenantId, recordedBy: 'invitation' as const };
  return await beginSession(tools, { id, email }, visitor, beginning);
}

/** Uses an invitation up for an account. Throws RequestError: `unknown_invitation`, `user_exists`. */
export async function join(
  trx: Transaction,
  user: Pick<User, 'id' | 'email'>,
  { id, email, role, tenantId, invitedBy, userId, ref }: Invitation,
  visitor: Visitor,
): Promise<void> {
  if (userId !== null || role === null || !(await takeInvitation(trx, id))) throw unknownInvitation();
  await refuseMember(trx, tenantId, email);
  if (role === 'operator' || tenantId === null) await makeOperator(trx, user.id);
  else await insertMembership(trx, { userId: user.id, tenantId, role, ref });
  // They were made for what the account could do before.
  await endPasswordLinks(trx, user.id);
  const detail = { role, invitedBy, userId: user.id, ...ofRef(ref) };
  const action = 'user.invitation_accepted';
  await recordUserChange(trx, actorAt(user, visitor), { tenantId, action, email, detail });
}

/** Throws RequestError: `password_not_own` where another person may know the password, `unknown_user`. */
export function refuseForeignPassword(user: User | null): void {
  if (user === null || user.disabledAt !== null)
    throw new RequestError('unknown_user', 'There is no such user.');
  if (user.passwordLinkBy === null) return;
  throw new RequestError(
    'password_not_own',
    `Your password was set through a link made by ${user.passwordLinkBy}. Choose a new one under Account first.`,
  );
}

function signInFirst(): RequestError {
  return new RequestError(
    'second_factor_due',
    'This password opens an account with a second factor. Sign in to it, and open the link again.',
    'password',
  );
}

async function refuseMember(trx: Transaction, tenantId: string | null, email: string): Promise<void> {
  if (!(await hasMember(trx, tenantId, email))) return;
  const text =
    tenantId === null
      ? 'There is an operator with this e-mail address already.'
      : 'A user with this e-mail address belongs to this tenant already.';
  throw new RequestError('user_exists', text, 'email');
}

export function unknownInvitation(): RequestError {
  return new RequestError(
    'unknown_invitation',
    'This link does not work (any more): it was used, withdrawn, replaced, or is too old.',
  );
}
