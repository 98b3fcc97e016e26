import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { invalidValue, RequestError } from '../../platform/request-input.ts';
import { endLinksMadeBy, endPasswordLinks } from './invitation-store.ts';
import {
  deleteMembership,
  lockActiveAdmins,
  type Member,
  setMemberDisabled,
  setMemberRole,
} from './memberships.ts';
import { lockedMember, recordUserChange, refuseOneself, type TenantAuthority } from './user-authority.ts';
import { checkRole } from './user-input.ts';
import { endSessions } from './user-sessions.ts';

type Tools = { database: Database };

/** Sessions there and open links end. Throws RequestError: `invalid_value`, `unknown_user`, `own_account`, `last_admin`. */
export async function changeRole(
  tools: Tools,
  authority: TenantAuthority,
  userId: string,
  given: string,
): Promise<void> {
  refuseOneself(authority, userId);
  await changeMember(tools, authority, userId, async (trx, member) => {
    const { tenantId } = authority;
    const role = checkRole(given, tenantId);
    if (role === 'operator') throw invalidValue('A member of a tenant is no operator there.', 'role');
    if (role === member.role) return null;
    if (role === 'member') await refuseLastAdmin(trx, authority, userId);
    await setMemberRole(trx, { userId, tenantId, role });
    await endAccess(trx, tenantId, userId);
    return { action: 'user.role_changed', detail: { previousRole: member.role, role } };
  });
}

/** Other tenants are not concerned. Throws RequestError: `unknown_user`, `own_account`, `last_admin`. */
export async function disableMember(tools: Tools, authority: TenantAuthority, userId: string): Promise<void> {
  refuseOneself(authority, userId);
  await changeMember(tools, authority, userId, async (trx, { disabledAt }) => {
    if (disabledAt !== null) return null;
    await refuseLastAdmin(trx, authority, userId);
    await setMemberDisabled(trx, { userId, tenantId: authority.tenantId, disabled: true });
    await endAccess(trx, authority.tenantId, userId);
    return { action: 'user.disabled' };
  });
}

/** Lets a member into the tenant again. Throws RequestError `unknown_user`. */
export async function enableMember(tools: Tools, authority: TenantAuthority, userId: string): Promise<void> {
  await changeMember(tools, authority, userId, async (trx, { disabledAt }) => {
    if (disabledAt === null) return null;
    await setMemberDisabled(trx, { userId, tenantId: authority.tenantId, disabled: false });
    return { action: 'user.enabled' };
  });
}

/** An account that belongs nowhere then ends too. Throws RequestError: `unknown_user`, `own_account`, `last_admin`. */
export async function removeMember(tools: Tools, authority: TenantAuthority, userId: string): Promise<void> {
  refuseOneself(authority, userId);
  await changeMember(tools, authority, userId, async (trx, { role }) => {
    await refuseLastAdmin(trx, authority, userId);
    await endAccess(trx, authority.tenantId, userId);
    await deleteMembership(trx, authority.tenantId, userId);
    return { action: 'user.removed', detail: { role } };
  });
}

/** Records what `change` has done to the member, who is locked; null: it left everything as it was. */
async function changeMember(
  { database }: Tools,
  { tenantId, actor }: TenantAuthority,
  userId: string,
  change: (
    trx: Transaction,
    member: Member,
  ) => Promise<{ action: string; detail?: Record<string, string> } | null>,
): Promise<void> {
  await database.transaction(async (trx) => {
    const { member } = await lockedMember(trx, tenantId, userId);
    const made = await change(trx, member);
    if (made === null) return;
    const detail = { ...made.detail, userId, ...(member.ref !== null && { userRef: member.ref }) };
    await recordUserChange(trx, actor, { tenantId, email: member.email, ...made, detail });
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
  await endSessions(trx, userId, { tenantId });
  await endPasswordLinks(trx, userId);
  await endLinksMadeBy(trx, userId, tenantId);
}
