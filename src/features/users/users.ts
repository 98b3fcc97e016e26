import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { invalidValue, RequestError, shown } from '../../platform/request-input.ts';
import { emailOf } from '../mail/email-address.ts';
import { endLinksMadeBy, endPasswordLinks } from './invitation-store.ts';
import { type Authority, lockedUser, recordAccountChange, refuseOneself } from './user-authority.ts';
import { endSessions } from './user-sessions.ts';
import {
  countActiveOperators,
  deleteUser,
  findUser,
  findUsersByEmail,
  setUserDisabled,
  type User,
} from './user-store.ts';

type Tools = { database: Database };

const USER_ID = /^\d{1,18}$/;

/** By id, or by an address that no other account has. Throws RequestError: `unknown_user`, `invalid_value`. */
export async function userNamed({ database }: Tools, text: string): Promise<User> {
  const found = await usersNamed(database, text);
  const [user] = found;
  if (user === undefined) throw new RequestError('unknown_user', `There is no user ${shown(text)}.`);
  if (found.length > 1) {
    const ids = found.map(({ id }) => id).join(', ');
    throw invalidValue(
      `Several accounts have the address ${shown(text)}; name one by its id: ${ids}.`,
      'user',
    );
  }
  return user;
}

async function usersNamed(database: Database, text: string): Promise<User[]> {
  if (USER_ID.test(text)) {
    const user = await findUser(database, text);
    return user === null ? [] : [user];
  }
  const email = emailOf(text);
  return email === null ? [] : await findUsersByEmail(database, email);
}

/** At once and everywhere. Throws RequestError: `unknown_user`, `own_account`, `last_operator`. */
export async function disableUser({ database }: Tools, authority: Authority, userId: string): Promise<void> {
  refuseOneself(authority, userId);
  await database.transaction(async (trx) => {
    const user = await lockedBesideOperators(trx, userId);
    if (user.disabledAt !== null) return;
    await setUserDisabled(trx, userId, true);
    await endSessions(trx, userId);
    await endPasswordLinks(trx, userId);
    await endLinksMadeBy(trx, userId, null);
    await recordAccountChange(trx, authority.actor, user, { action: 'user.disabled' });
  });
}

/** Lets an account sign in again, for operators. Throws RequestError `unknown_user`. */
export async function enableUser({ database }: Tools, authority: Authority, userId: string): Promise<void> {
  await database.transaction(async (trx) => {
    const user = await lockedUser(trx, userId);
    if (user.disabledAt === null) return;
    await setUserDisabled(trx, userId, false);
    await recordAccountChange(trx, authority.actor, user, { action: 'user.enabled' });
  });
}

/** The audit log keeps its entries about the account. Throws RequestError: `unknown_user`, `own_account`, `last_operator`. */
export async function removeUser({ database }: Tools, authority: Authority, userId: string): Promise<void> {
  refuseOneself(authority, userId);
  await database.transaction(async (trx) => {
    const user = await lockedBesideOperators(trx, userId);
    await deleteUser(trx, userId);
    await recordAccountChange(trx, authority.actor, user, { action: 'user.removed' });
  });
}

/** Throws as `removeUser` does, and removes nothing. */
export async function checkRemovable({ database }: Tools, authority: Authority, id: string): Promise<void> {
  refuseOneself(authority, id);
  await database.transaction((trx) => lockedBesideOperators(trx, id));
}

/** An account that can be taken away. Throws RequestError: `unknown_user`, `last_operator`. */
async function lockedBesideOperators(trx: Transaction, userId: string): Promise<User> {
  const operators = await countActiveOperators(trx);
  const user = await lockedUser(trx, userId);
  if (user.isOperator && user.disabledAt === null && operators === 1) {
    throw new RequestError(
      'last_operator',
      'This is the only operator who can sign in; add another one first.',
    );
  }
  return user;
}
