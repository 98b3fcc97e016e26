import { findTenant } from '../../../features/accounts/accounts.ts';
import {
  deleteKeyRequestsOfTenant,
  KEYS_NAMED_IN,
  renameRequester,
} from '../../../features/keys/key-request-store.ts';
import { deleteMailsTo } from '../../../features/mail/mails.ts';
import { BROADCASTS_NAMED_IN } from '../../../features/messages/erase-broadcasts.ts';
import { REPLAYS_NAMED_IN } from '../../../features/replays/replay-store.ts';
import {
  countActiveOperators,
  deleteInvitationsOf,
  deleteUser,
  forgetUsersWithoutTenant,
  lockUserToErase,
  USERS_NAMED_IN,
} from '../../../features/users/user-store.ts';
import type { NamedIn } from '../../../platform/erasing.ts';
import { NotYetErased } from '../../../platform/erasing.ts';
import type { Transaction } from '../../../platform/postgres/database.ts';
import { execute } from '../../../platform/postgres/sql.ts';
import { ALERTS_NAMED_IN, forgetFailedMail } from '../../alerts/alerts.ts';
import { closeTenant, removeTenant } from '../account-removal.ts';
import type { ErasureStep } from '../erasure-step.ts';

const USERS_AT_ONCE = 1_000;
const AGAIN_MS = 60_000;

/** Memberships, sessions and invitations, and the users that belong nowhere else; its WABAs are gone. */
export const tenantStep: ErasureStep = {
  name: 'tenant',
  async prepare({ database, erasure }) {
    const { subjectId, requestedBy: name } = erasure;
    if ((await findTenant(database, subjectId)) === null) return;
    await removeTenant({ database, actor: { name, requestId: null, ip: null } }, subjectId);
  },
  async erase(trx, { erasure: { subjectId } }) {
    await deleteKeyRequestsOfTenant(trx, subjectId);
    await closeTenant(trx, subjectId);
    return { after: null, counts: { tenants: 1, users: await forgetUsersWithoutTenant(trx, USERS_AT_ONCE) } };
  },
};

const NAMED_IN: NamedIn = [
  ...KEYS_NAMED_IN,
  ...REPLAYS_NAMED_IN,
  ...BROADCASTS_NAMED_IN,
  ...ALERTS_NAMED_IN,
  ...USERS_NAMED_IN,
];

/** The name goes where it stands beside what the user did. */
export const userStep: ErasureStep = {
  name: 'user',
  async erase(trx, { erasure: { subjectId } }) {
    const operators = await countActiveOperators(trx);
    const user = await lockUserToErase(trx, subjectId);
    if (user === null) return { after: null };
    // Another one may have gone since it was asked for.
    if (user.maySignIn && operators === 1)
      throw new NotYetErased('This is the only operator who can sign in; add another one.', AGAIN_MS);
    await deleteUser(trx, subjectId);
    const replaced = `erased user ${subjectId}`;
    await renameRequester(trx, subjectId, replaced);
    // Where the address is another account's too, what it did stays that account's.
    const named = user.isOnly ? await replaceNames(trx, user.email, replaced) : 0;
    const invitations = user.isOnly ? await deleteInvitationsOf(trx, user.email) : 0;
    const mails = user.isOnly ? await forgetMails(trx, user.email) : 0;
    return { after: null, counts: { users: 1, names: named, invitations, mails } };
  },
};

/** Also those that were sent before there was an account, and the alert that one was refused. */
async function forgetMails(trx: Transaction, email: string): Promise<number> {
  await forgetFailedMail(trx, email);
  return await deleteMailsTo(trx, email);
}

async function replaceNames(trx: Transaction, email: string, replaced: string): Promise<number> {
  let changed = 0;
  for (const [table, column] of NAMED_IN)
    changed += await execute(trx, `update ${table} set ${column} = :replaced where ${column} = :email`, {
      replaced,
      email,
    });
  return changed;
}
