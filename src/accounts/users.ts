import type { Database, Transaction } from '../database/database.ts';
import { endLinks } from '../database/invitations.ts';
import { deleteSessions } from '../database/user-sessions.ts';
import {
  countActiveOperators,
  findUserByEmail,
  listTenantUsers,
  listUsers,
  setUserDisabled,
  setUserRole,
  type User,
} from '../database/users.ts';
import { AccountError } from './account-error.ts';
import { shown } from './account-input.ts';
import { recordUserChange } from './user-audit.ts';
import { type Authority, refuseOneself, userUnder } from './user-authority.ts';
import { checkRole, emailOf } from './user-input.ts';

type Tools = { database: Database };

/** Whoever belongs to a tenant, the disabled too. */
export async function usersOf({ database }: Tools, tenantId: string): Promise<User[]> {
  return await listTenantUsers(database, tenantId);
}

/** Everybody, for operators. */
export async function allUsers({ database }: Tools): Promise<(User & { businessName: string | null })[]> {
  return await listUsers(database);
}

/** The user with this address, for operators. Throws AccountError `unknown_user`. */
export async function userByEmail({ database }: Tools, text: string): Promise<User> {
  const email = emailOf(text);
  const user = email === null ? null : await findUserByEmail(database, email);
  if (user === null) throw new AccountError('unknown_user', `There is no user ${shown(text)}.`);
  return user;
}

/**
 * Makes a user of a tenant administrator or member of it; who was signed in signs in again, and open links end.
 * Throws AccountError: `invalid_value`, `unknown_user`, `own_account`.
 */
export async function changeRole(
  { database }: Tools,
  authority: Authority,
  userId: string,
  given: string,
): Promise<void> {
  refuseOneself(authority, userId);
  await database.transaction(async (trx) => {
    const { email, tenantId, role: previous } = await userUnder(trx, authority, userId);
    const role = checkRole(given, tenantId);
    if (role === previous) return;
    await setUserRole(trx, userId, role);
    await endAccess(trx, userId, email);
    const detail = { from: previous, to: role };
    await recordUserChange(trx, authority.actor, { tenantId, action: 'user.role_changed', email, detail });
  });
}

/**
 * Locks somebody out, at once and everywhere; the last operator stays.
 * Throws AccountError: `unknown_user`, `own_account`, `last_operator`.
 */
export async function disableUser({ database }: Tools, authority: Authority, userId: string): Promise<void> {
  refuseOneself(authority, userId);
  await database.transaction(async (trx) => {
    const operators = await countActiveOperators(trx);
    const { email, tenantId, role, disabledAt } = await userUnder(trx, authority, userId);
    if (disabledAt !== null) return;
    if (role === 'operator' && operators === 1) {
      throw new AccountError(
        'last_operator',
        'This is the only operator who can sign in; add another one first.',
      );
    }
    await setUserDisabled(trx, userId, true);
    await endAccess(trx, userId, email);
    await recordUserChange(trx, authority.actor, { tenantId, action: 'user.disabled', email });
  });
}

/** What was given under the rights before: sessions, and the open links that are for a user or were made by him. */
async function endAccess(trx: Transaction, userId: string, email: string): Promise<void> {
  await deleteSessions(trx, userId);
  await endLinks(trx, { userId, madeBy: email });
}

/** Lets somebody sign in again. Throws AccountError `unknown_user`. */
export async function enableUser({ database }: Tools, authority: Authority, userId: string): Promise<void> {
  await database.transaction(async (trx) => {
    const { email, tenantId, disabledAt } = await userUnder(trx, authority, userId);
    if (disabledAt === null) return;
    await setUserDisabled(trx, userId, false);
    await recordUserChange(trx, authority.actor, { tenantId, action: 'user.enabled', email });
  });
}
