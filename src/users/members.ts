import type { Database, Transaction } from '../platform/postgres/database.ts';
import { invalidValue, RequestError } from '../platform/request-input.ts';
import { endLinksMadeBy, endPasswordLinks } from './invitation-store.ts';
import {
  deleteMembership,
  listMembers,
  lockActiveAdmins,
  type Member,
  setMemberDisabled,
  setMemberRole,
} from './memberships.ts';
import { lockedMember, recordUserChange, refuseOneself, type TenantAuthority } from './user-authority.ts';
import { checkRole } from './user-input.ts';
import { deleteSessionsIn } from './user-sessions.ts';

type Tools = { database: Database };

/** The members of a tenant, the disabled too. */
export async function membersOf({ database }: Tools, tenantId: string): Promise<Member[]> {
  return await listMembers(database, tenantId);
}

/**
 * Makes a member administrator or plain member of the tenant; who worked there signs in again, and open links end.
 * Throws RequestError: `invalid_value`, `unknown_user`, `own_account`, `last_admin`.
 */
export async function changeRole(
  { database }: Tools,
  authority: TenantAuthority,
  userId: string,
  given: string,
): Promise<void> {
  refuseOneself(authority, userId);
  const { tenantId, actor } = authority;
  await database.transaction(async (trx) => {
    const { member } = await lockedMember(trx, tenantId, userId);
    const role = checkRole(given, tenantId);
    if (role === 'operator') throw invalidValue('A member of a tenant is no operator there.', 'role');
    if (role === member.role) return;
    if (role === 'member') await refuseLastAdmin(trx, authority, userId);
    await setMemberRole(trx, { userId, tenantId, role });
    await endAccess(trx, tenantId, userId);
    const detail = { from: member.role, to: role };
    const { email } = member;
    await recordUserChange(trx, actor, { tenantId, action: 'user.role_changed', email, detail });
  });
}

/**
 * Locks a member out of the tenant at once; other tenants are not concerned.
 * Throws RequestError: `unknown_user`, `own_account`, `last_admin`.
 */
export async function disableMember(
  { database }: Tools,
  authority: TenantAuthority,
  userId: string,
): Promise<void> {
  refuseOneself(authority, userId);
  const { tenantId, actor } = authority;
  await database.transaction(async (trx) => {
    const { member } = await lockedMember(trx, tenantId, userId);
    if (member.disabledAt !== null) return;
    await refuseLastAdmin(trx, authority, userId);
    await setMemberDisabled(trx, { userId, tenantId, disabled: true });
    await endAccess(trx, tenantId, userId);
    await recordUserChange(trx, actor, { tenantId, action: 'user.disabled', email: member.email });
  });
}

/** Lets a member into the tenant again. Throws RequestError `unknown_user`. */
export async function enableMember(
  { database }: Tools,
  { tenantId, actor }: TenantAuthority,
  userId: string,
): Promise<void> {
  await database.transaction(async (trx) => {
    const { member } = await lockedMember(trx, tenantId, userId);
    if (member.disabledAt === null) return;
    await setMemberDisabled(trx, { userId, tenantId, disabled: false });
    await recordUserChange(trx, actor, { tenantId, action: 'user.enabled', email: member.email });
  });
}

/**
 * Ends a membership, at once; an account that belongs nowhere then ends with it.
 * Throws RequestError: `unknown_user`, `own_account`, `last_admin`.
 */
export async function removeMember(
  { database }: Tools,
  authority: TenantAuthority,
  userId: string,
): Promise<void> {
  refuseOneself(authority, userId);
  const { tenantId, actor } = authority;
  await database.transaction(async (trx) => {
    const { member } = await lockedMember(trx, tenantId, userId);
    await refuseLastAdmin(trx, authority, userId);
    await endAccess(trx, tenantId, userId);
    await deleteMembership(trx, tenantId, userId);
    const { email, role } = member;
    await recordUserChange(trx, actor, { tenantId, action: 'user.removed', email, detail: { role } });
  });
}

/** Two administrators must not remove each other at the same time; operators can invite another one. */
async function refuseLastAdmin(trx: Transaction, authority: TenantAuthority, userId: string): Promise<void> {
  const admins = await lockActiveAdmins(trx, authority.tenantId);
  const isOperators = authority.userId === null || authority.actor.isOperator === true;
  if (isOperators || !admins.includes(userId) || admins.length > 1) return;
  throw new RequestError(
    'last_admin',
    'This is the only administrator of the tenant who can sign in; make another one first.',
  );
}

/** What was given under the rights before: sessions in the tenant, and links for or by a member. */
async function endAccess(trx: Transaction, tenantId: string, userId: string): Promise<void> {
  await deleteSessionsIn(trx, userId, tenantId);
  await endPasswordLinks(trx, userId);
  await endLinksMadeBy(trx, userId, tenantId);
}
