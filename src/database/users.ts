import type { PortalRole } from '../domain/portal-role.ts';
import type { Database, Transaction } from './database.ts';
import { execute, query } from './sql.ts';

export type User = {
  id: string;
  email: string;
  name: string;
  role: PortalRole;
  /** Null exactly for operators. */
  tenantId: string | null;
  hasPassword: boolean;
  disabledAt: Date | null;
  createdAt: Date;
  lastSignInAt: Date | null;
};

export type NewUser = {
  email: string;
  name: string;
  role: PortalRole;
  tenantId: string | null;
  passwordHash: string | null;
};

const USER = `id, email, name, role, tenant_id as "tenantId", password_hash is not null as "hasPassword",
  disabled_at as "disabledAt", created_at as "createdAt", last_sign_in_at as "lastSignInAt"`;

/** Adds a user and returns the id; null: the e-mail address is taken. It must be in lower case. */
export async function insertUser(database: Database, user: NewUser): Promise<string | null> {
  const [row] = await query<{ id: string }>(
    database,
    `insert into users (email, name, role, tenant_id, password_hash)
     values (:email, :name, :role, :tenantId, :passwordHash) on conflict (email) do nothing returning id`,
    user,
  );
  return row?.id ?? null;
}

/** Until the transaction ends, nobody else adds a user. */
export async function lockUsers(trx: Transaction): Promise<void> {
  await execute(trx, 'lock table users in share row exclusive mode');
}

export async function hasUsers(database: Database): Promise<boolean> {
  const [row] = await query<{ found: boolean }>(database, 'select exists (select from users) as found');
  return row?.found ?? false;
}

/** The user with this id; null when there is none such. */
export async function findUser(database: Database, id: string): Promise<User | null> {
  const [row] = await query<User>(database, `select ${USER} from users where id = ?`, [id]);
  return row ?? null;
}

/** The user with this e-mail address, in lower case; null when there is none such. */
export async function findUserByEmail(
  database: Database,
  email: string,
): Promise<(User & { passwordHash: string | null }) | null> {
  const [row] = await query<User & { passwordHash: string | null }>(
    database,
    `select ${USER}, password_hash as "passwordHash" from users where email = ?`,
    [email],
  );
  return row ?? null;
}

/** The PHC string of a user; null: no such user, or one without a password. */
export async function findPasswordHash(database: Database, userId: string): Promise<string | null> {
  const [row] = await query<{ hash: string | null }>(
    database,
    'select password_hash as hash from users where id = ?',
    [userId],
  );
  return row?.hash ?? null;
}

/** Replaces the hash, unless it is no longer `previous`: of two changes at once, one counts. */
export async function replacePasswordHash(
  database: Database,
  userId: string,
  { previous, next }: { previous: string | null; next: string },
): Promise<boolean> {
  const changed = await execute(
    database,
    'update users set password_hash = ? where id = ? and password_hash is not distinct from cast(? as text)',
    [next, userId, previous],
  );
  return changed === 1;
}

export async function noteSignIn(database: Database, userId: string): Promise<void> {
  await execute(database, 'update users set last_sign_in_at = now() where id = ?', [userId]);
}

/** Whoever belongs to a tenant, the disabled too, by e-mail address. */
export async function listTenantUsers(database: Database, tenantId: string): Promise<User[]> {
  return await query<User>(database, `select ${USER} from users where tenant_id = ? order by email`, [
    tenantId,
  ]);
}

/** Everybody with the name of their tenant, operators first. */
export async function listUsers(database: Database): Promise<(User & { businessName: string | null })[]> {
  return await query(
    database,
    `select u.*, t.business_name as "businessName"
       from (select ${USER} from users) u left join tenants t on t.id = u."tenantId"
      order by u."tenantId" nulls first, u.email`,
  );
}

/** The user, whose row is locked until the transaction ends; null when there is none such. */
export async function lockUser(trx: Transaction, userId: string): Promise<User | null> {
  const [row] = await query<User>(trx, `select ${USER} from users where id = ? for update`, [userId]);
  return row ?? null;
}

export async function setUserRole(trx: Transaction, userId: string, role: PortalRole): Promise<void> {
  await execute(trx, 'update users set role = ? where id = ?', [role, userId]);
}

export async function setUserDisabled(trx: Transaction, userId: string, disabled: boolean): Promise<void> {
  await execute(
    trx,
    'update users set disabled_at = case when cast(? as boolean) then coalesce(disabled_at, now()) end where id = ?',
    [disabled, userId],
  );
}

/** How many operators may sign in; their rows are locked, so that two do not disable each other at once. */
export async function countActiveOperators(trx: Transaction): Promise<number> {
  const rows = await query(
    trx,
    `select id from users where role = 'operator' and disabled_at is null order by id for update`,
  );
  return rows.length;
}
