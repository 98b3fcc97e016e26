import type { Transaction } from '../database/database.ts';
import { lockUser, type User } from '../database/users.ts';
import { AccountError } from './account-error.ts';
import { checkRowId } from './account-input.ts';
import type { Actor } from './audit.ts';

/** On whose behalf users are administered. */
export type Authority = {
  actor: Actor;
  /** Whose users; null: an operator, who administers everybody's. */
  tenantId: string | null;
  /** The user himself, who cannot take his own rights; null for the command line. */
  userId: string | null;
};

/** The user, locked until the transaction ends. Throws AccountError `unknown_user`, also for another tenant's. */
export async function userUnder(trx: Transaction, authority: Authority, userId: string): Promise<User> {
  const user = await lockUser(trx, checkRowId('The id of the user', userId));
  const isTheirs = authority.tenantId === null || user?.tenantId === authority.tenantId;
  if (user === null || !isTheirs) throw new AccountError('unknown_user', 'There is no such user.');
  return user;
}

/** Throws AccountError `own_account`: nobody locks himself out by mistake. */
export function refuseOneself(authority: Authority, userId: string): void {
  if (authority.userId !== userId) return;
  throw new AccountError('own_account', 'You cannot do this to your own account; ask somebody else to.');
}
