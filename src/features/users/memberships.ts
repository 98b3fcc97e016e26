import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { execute, hasRow, query, queryColumn, queryOne } from '../../platform/postgres/sql.ts';
import type { TenantRole } from './user-store.ts';

/** A user as a tenant sees them: nothing of other tenants. */
export type Member = {
  id: string;
  email: string;
  name: string;
  role: TenantRole;
  /** What the operator's program calls the user in this tenant; null: nothing. */
  ref: string | null;
  /** Locked out of this tenant. */
  disabledAt: Date | null;
  /** Locked out of everything, by an operator. */
  isLocked: boolean;
  /** In this tenant. */
  lastSignInAt: Date | null;
};

const MEMBER = `u.id, u.email, u.name, m.role, m.ref, m.disabled_at as "disabledAt", u.disabled_at is not null as "isLocked",
  m.last_sign_in_at as "lastSignInAt"`;
const FROM = 'from memberships m join users u on u.id = m.user_id';

/** Adds a user to a tenant; false for one who is a member already. */
export async function insertMembership(
  trx: Transaction,
  {
    userId,
    tenantId,
    role,
    ref = null,
  }: { userId: string; tenantId: string; role: TenantRole; ref?: string | null },
): Promise<boolean> {
  const text = `insert into memberships (user_id, tenant_id, role, ref) values (:userId, :tenantId, :role, :ref)
                on conflict (user_id, tenant_id) do nothing`;
  return (await execute(trx, text, { userId, tenantId, role, ref })) === 1;
}

export async function listMembers(database: Database, tenantId: string): Promise<Member[]> {
  const text = `select ${MEMBER} ${FROM} where m.tenant_id = :tenantId order by u.email, u.id`;
  return await query<Member>(database, text, { tenantId });
}

/** Whether a user with this address belongs to the tenant; a null tenant: is an operator. */
export async function hasMember(
  database: Database,
  tenantId: string | null,
  email: string,
): Promise<boolean> {
  return await hasRow(
    database,
    `select from users u
      where u.email = :email
        and case when cast(:tenantId as bigint) is null then u.is_operator
                 else exists (select from memberships m where m.user_id = u.id and m.tenant_id = :tenantId) end`,
    { email, tenantId },
  );
}

/** A member of a tenant, locked until the transaction ends; null when there is none such. The user is locked before. */
export async function lockMember(trx: Transaction, tenantId: string, userId: string): Promise<Member | null> {
  const text = `select ${MEMBER} ${FROM} where m.tenant_id = :tenantId and m.user_id = :userId for update of m`;
  return await queryOne<Member>(trx, text, { tenantId, userId });
}

/** Who administers a tenant and can sign in; their memberships are locked, so that two do not remove each other. */
export async function lockActiveAdmins(trx: Transaction, tenantId: string): Promise<string[]> {
  return await queryColumn<string>(
    trx,
    `select m.user_id ${FROM}
      where m.tenant_id = :tenantId and m.role = 'admin' and m.disabled_at is null and u.disabled_at is null
      order by m.user_id for update of m`,
    { tenantId },
  );
}

export async function setMemberRef(
  trx: Transaction,
  { userId, tenantId, ref }: { userId: string; tenantId: string; ref: string },
): Promise<void> {
  const text = 'update memberships set ref = :ref where user_id = :userId and tenant_id = :tenantId';
  await execute(trx, text, { ref, userId, tenantId });
}

export async function setMemberRole(
  trx: Transaction,
  { userId, tenantId, role }: { userId: string; tenantId: string; role: TenantRole },
): Promise<void> {
  const text = 'update memberships set role = :role where user_id = :userId and tenant_id = :tenantId';
  await execute(trx, text, { role, userId, tenantId });
}

export async function setMemberDisabled(
  trx: Transaction,
  { userId, tenantId, disabled }: { userId: string; tenantId: string; disabled: boolean },
): Promise<void> {
  await execute(
    trx,
    `update memberships set disabled_at = case when cast(:disabled as boolean) then coalesce(disabled_at, now()) end
      where user_id = :userId and tenant_id = :tenantId`,
    { userId, tenantId, disabled },
  );
}

/** Ends a membership; an account that belongs nowhere then is removed with it. */
export async function deleteMembership(trx: Transaction, tenantId: string, userId: string): Promise<void> {
  await execute(trx, 'delete from memberships where user_id = :userId and tenant_id = :tenantId', {
    userId,
    tenantId,
  });
  await execute(
    trx,
    `delete from users u where u.id = :userId and not u.is_operator
        and not exists (select from memberships m where m.user_id = u.id)`,
    { userId },
  );
}
