import type { NamedIn } from '../../platform/erasing.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import {
  deleteUpTo,
  execute,
  hasRow,
  query,
  queryOne,
  queryOnly,
  queryValue,
} from '../../platform/postgres/sql.ts';
import { PLATFORM_ISSUER } from './user-identities.ts';
import type { PortalRole } from './user-input.ts';

export type TenantRole = Exclude<PortalRole, 'operator'>;

export type Membership = { tenantId: string; businessName: string; role: TenantRole; isDisabled: boolean };

/** An account to sign in with. Several can have one e-mail address, because addresses are not proven. */
export type User = {
  id: string;
  email: string;
  name: string;
  isOperator: boolean;
  memberships: Membership[];
  hasPassword: boolean;
  /** By how many people at OpenID providers it is signed in to. */
  identities: number;
  disabledAt: Date | null;
  createdAt: Date;
  lastSignInAt: Date | null;
  /** Who made the link by which the present password was set; null: its holder chose it. */
  passwordLinkBy: string | null;
  hasSecondFactor: boolean;
};

export type NewUser = { email: string; name: string; isOperator: boolean; passwordHash: string | null };

const MEMBERSHIPS = `(select coalesce(json_agg(json_build_object('tenantId', cast(m.tenant_id as text),
    'businessName', t.business_name, 'role', m.role, 'isDisabled', m.disabled_at is not null)
    order by t.business_name, m.tenant_id), '[]')
  from memberships m join tenants t on t.id = m.tenant_id where m.user_id = u.id)`;

const USER = `u.id, u.email, u.name, u.is_operator as "isOperator", ${MEMBERSHIPS} as memberships,
  u.password_hash is not null as "hasPassword",
  (select cast(count(*) as integer) from user_identities i where i.user_id = u.id) as identities,
  u.disabled_at as "disabledAt", u.created_at as "createdAt", u.last_sign_in_at as "lastSignInAt",
  u.password_link_by as "passwordLinkBy",
  exists (select from user_totp f where f.user_id = u.id) as "hasSecondFactor"`;

/** Adds an account and returns its id. The e-mail address must be in lower case. */
export async function insertUser(database: Database, user: NewUser): Promise<string> {
  const row = await queryOnly<{ id: string }>(
    database,
    `insert into users (email, name, is_operator, password_hash)
     values (:email, :name, :isOperator, :passwordHash) returning id`,
    user,
  );
  return row.id;
}

/** Brings an account up to date with the product that vouches for its person. */
export async function saveUserPerson(
  trx: Transaction,
  userId: string,
  { email, name }: Pick<NewUser, 'email' | 'name'>,
): Promise<void> {
  const text = `update users set email = :email, name = :name where id = :userId and (email, name) <> (:email, :name)`;
  await execute(trx, text, { userId, email, name });
}

/** Until the transaction ends, no other one adds a user. */
export async function lockUsers(trx: Transaction): Promise<void> {
  await execute(trx, 'lock table users in share row exclusive mode');
}

export async function hasUsers(database: Database): Promise<boolean> {
  return await hasRow(database, 'select from users limit 1');
}

export async function findUser(database: Database, id: string): Promise<User | null> {
  return await queryOne<User>(database, `select ${USER} from users u where u.id = :id`, { id });
}

export async function findUsersByEmail(database: Database, email: string): Promise<User[]> {
  return await query<User>(database, `select ${USER} from users u where u.email = :email order by u.id`, {
    email,
  });
}

/** `email` is in lower case. */
export async function hasEmail(database: Database, userId: string, email: string): Promise<boolean> {
  return await hasRow(database, 'select from users where id = :userId and email = :email', {
    userId,
    email,
  });
}

export type SignInCandidate = {
  id: string;
  email: string;
  passwordHash: string;
  passwordLinkBy: string | null;
  hasSecondFactor: boolean;
};

/** The accounts of an address that can be signed in to by password, the one that was used last first. */
export async function signInCandidates(database: Database, email: string): Promise<SignInCandidate[]> {
  return await query<SignInCandidate>(
    database,
    `select u.id, u.email, u.password_hash as "passwordHash", u.password_link_by as "passwordLinkBy",
            exists (select from user_totp f where f.user_id = u.id) as "hasSecondFactor"
       from users u
      where u.email = :email and u.password_hash is not null and u.disabled_at is null
        and (u.is_operator
             or exists (select from memberships m where m.user_id = u.id and m.disabled_at is null))
      order by u.last_sign_in_at desc nulls last, u.id`,
    { email },
  );
}

/** The PHC string of a user; null: no such user, or one without a password. */
export async function findPasswordHash(database: Database, userId: string): Promise<string | null> {
  return await queryValue<string>(database, 'select password_hash from users where id = :userId', { userId });
}

/** Replaces the hash, unless it is no longer `previous`: of two changes at once, one counts. */
export async function replacePasswordHash(
  database: Database,
  userId: string,
  { previous, next }: { previous: string | null; next: string },
): Promise<boolean> {
  const changed = await execute(
    database,
    'update users set password_hash = :next where id = :userId and password_hash is not distinct from cast(:previous as text)',
    { next, userId, previous },
  );
  return changed === 1;
}

/** Notes through whose link the password was set; null: its holder chose it. */
export async function notePasswordLink(trx: Transaction, userId: string, by: string | null): Promise<void> {
  await execute(
    trx,
    `update users set password_link_by = :by, password_link_at = case when cast(:by as text) is not null then now() end
      where id = :userId`,
    { userId, by },
  );
}

export async function listUsers(database: Database): Promise<User[]> {
  return await query<User>(
    database,
    `select ${USER} from users u
      order by not u.is_operator, (select min(m.tenant_id) from memberships m where m.user_id = u.id), u.email, u.id`,
  );
}

export async function lockUser(trx: Transaction, userId: string): Promise<User | null> {
  return await queryOne<User>(trx, `select ${USER} from users u where u.id = :userId for update of u`, {
    userId,
  });
}

/** The account that this very hash opens and whose holder chose it, locked; null when there is none such. */
export async function lockUserByHash(
  trx: Transaction,
  email: string,
  passwordHash: string,
): Promise<User | null> {
  return await queryOne<User>(
    trx,
    `select ${USER} from users u
      where u.email = :email and u.password_hash = :passwordHash and u.disabled_at is null and u.password_link_by is null
      order by u.last_sign_in_at desc nulls last, u.id limit 1 for update of u`,
    { email, passwordHash },
  );
}

export async function makeOperator(trx: Transaction, userId: string): Promise<void> {
  await execute(trx, 'update users set is_operator = true where id = :userId', { userId });
}

export async function setUserDisabled(trx: Transaction, userId: string, disabled: boolean): Promise<void> {
  await execute(
    trx,
    'update users set disabled_at = case when cast(:disabled as boolean) then coalesce(disabled_at, now()) end where id = :userId',
    { disabled, userId },
  );
}

/** Removes an account with its memberships, sessions, identities, and the links for it or made by it. */
export async function deleteUser(trx: Transaction, userId: string): Promise<void> {
  await execute(trx, 'delete from users where id = :userId', { userId });
}

/** Removes up to `limit` accounts that belong nowhere, which a removed tenant leaves behind; for housekeeping. */
export async function forgetUsersWithoutTenant(database: Database, limit: number): Promise<number> {
  const which = `not is_operator and not exists (select from memberships m where m.user_id = users.id)
    and not exists (select from user_identities i where i.user_id = users.id and i.issuer = :platform)`;
  return await deleteUpTo(database, limit, 'users', which, { platform: PLATFORM_ISSUER });
}

/** How many operators may sign in; their rows are locked, so that two do not disable each other at once. */
export async function countActiveOperators(trx: Transaction): Promise<number> {
  const text = 'select id from users where is_operator and disabled_at is null order by id for update';
  const rows = await query(trx, text);
  return rows.length;
}

export async function saveAlertMail(database: Database, userId: string, isOn: boolean): Promise<void> {
  await execute(database, 'update users set alert_mail = :isOn where id = :userId', { isOn, userId });
}

export async function noteAlertMailed(trx: Transaction, userId: string): Promise<void> {
  await execute(trx, 'update users set alert_mailed_at = now() where id = :userId', { userId });
}

export const USERS_NAMED_IN: NamedIn = [
  ['invitations', 'invited_by'],
  ['users', 'password_link_by'],
  ['user_sessions', 'password_link_by'],
  ['user_notices', 'by'],
];

export async function deleteInvitationsOf(trx: Transaction, email: string): Promise<number> {
  return await execute(trx, 'delete from invitations where email = :email', { email });
}

/** Ends what users have of a tenant that is taken away: memberships, sessions and invitations. */
export async function forgetTenantOfUsers(trx: Transaction, tenantId: string): Promise<void> {
  await execute(
    trx,
    `delete from user_identities where issuer = :platform and starts_with(subject, :tenantId || '/')`,
    { platform: PLATFORM_ISSUER, tenantId },
  );
  for (const table of ['user_sessions', 'portal_links', 'invitations', 'memberships']) {
    await execute(trx, `delete from ${table} where tenant_id = :tenantId`, { tenantId });
  }
}

/** `isOnly`: no other account has the address. */
type ErasedUser = { email: string; name: string; isOnly: boolean; maySignIn: boolean };

export async function lockUserToErase(trx: Transaction, userId: string): Promise<ErasedUser | null> {
  return await queryOne<ErasedUser>(
    trx,
    `select u.is_operator and u.disabled_at is null as "maySignIn", u.email, u.name,
            not exists (select from users o where o.email = u.email and o.id <> u.id) as "isOnly"
       from users u where u.id = :userId for update`,
    { userId },
  );
}
