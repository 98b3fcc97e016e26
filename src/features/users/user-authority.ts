import { type Actor, type AuditEntry, recordBy } from '../../platform/audit/audit.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { checkRowId, RequestError } from '../../platform/request-input.ts';
import { lockMember, type Member } from './memberships.ts';
import { lockUser, type User } from './user-store.ts';

export type Authority = {
  actor: Actor;
  /** Whose members; null: an operator, who administers accounts. */
  tenantId: string | null;
  /** The acting user, who cannot revoke their own rights; null for the command line. */
  userId: string | null;
};

export type TenantAuthority = Authority & { tenantId: string };

/** The account, locked until the transaction ends. Throws RequestError `unknown_user`. */
export async function lockedUser(trx: Transaction, userId: string): Promise<User> {
  const user = await lockUser(trx, checkRowId('The id of the user', userId));
  if (user === null) throw unknownUser();
  return user;
}

/** The account first, in the order of those who sign in. Throws RequestError `unknown_user`, also for another tenant's. */
export async function lockedMember(
  trx: Transaction,
  tenantId: string,
  userId: string,
): Promise<{ user: User; member: Member }> {
  const user = await lockedUser(trx, userId);
  const member = await lockMember(trx, tenantId, user.id);
  if (member === null) throw unknownUser();
  return { user, member };
}

/** Throws RequestError `own_account`: no user is locked out by their own mistake. */
export function refuseOneself(authority: Authority, userId: string): void {
  if (authority.userId !== userId) return;
  throw new RequestError(
    'own_account',
    'You cannot do this to your own account; ask another administrator or operator.',
  );
}

/** Another user may know the password of such a session. Throws RequestError `password_not_own`. */
export function refuseMarkedSession({ passwordLinkBy }: Pick<Actor, 'passwordLinkBy'>): void {
  if (!passwordLinkBy) return;
  throw new RequestError(
    'password_not_own',
    `This session began with a password that was set through a link made by ${passwordLinkBy}. Sign in with your second factor or your identity provider, set a password by a link that comes by e-mail, or ask another operator to confirm your password.`,
  );
}

function unknownUser(): RequestError {
  return new RequestError('unknown_user', 'There is no such user.');
}

export async function recordUserChange(
  database: Database,
  actor: Actor,
  change: { tenantId: string | null; action: string; email: string; detail?: AuditEntry['detail'] },
): Promise<void> {
  const { tenantId, action, email, detail = {} } = change;
  await recordBy(database, actor, { tenantId, wabaId: null, action, target: `user ${email}`, detail });
}

/** Writes down a change of an account: in the log of each of its tenants, of an account without one in that of the installation. */
export async function recordAccountChange(
  trx: Transaction,
  actor: Actor,
  { id: userId, email, memberships }: Pick<User, 'id' | 'email' | 'memberships'>,
  change: { action: string; detail?: AuditEntry['detail'] },
): Promise<void> {
  const tenants = memberships.length === 0 ? [null] : memberships.map(({ tenantId }) => tenantId);
  const detail = { ...change.detail, userId };
  for (const tenantId of tenants) await recordUserChange(trx, actor, { tenantId, email, ...change, detail });
}
