import { listTenants } from '../../../features/accounts/accounts.ts';
import { changeRole, disableMember, enableMember, removeMember } from '../../../features/users/members.ts';
import { listMembers, type Member } from '../../../features/users/memberships.ts';
import type { Authority, TenantAuthority } from '../../../features/users/user-authority.ts';
import { listUsers, type Membership, type User } from '../../../features/users/user-store.ts';
import { disableUser, enableUser, removeUser, userNamed } from '../../../features/users/users.ts';
import { invalidValue } from '../../../platform/request-input.ts';
import { PAGES } from '../access/page-access.ts';
import { pageNotFound } from '../access/page-error.ts';
import { badge } from '../components/badge.ts';
import type { Option } from '../kits/form-fields.ts';
import type { Empty, Filter, Wanted } from '../kits/list-page.ts';
import type { Place, Visit } from '../kits/visit.ts';
import { type Child, html, type Markup } from '../markup.ts';
import { hrefWith } from '../navigation.ts';

export type ListedUser = Pick<Member, 'id' | 'email' | 'name' | 'lastSignInAt'> & {
  roles: Child;
  status: Markup;
  isDisabled: boolean;
  role: 'admin' | 'member' | null;
};

/** What can be done about a user, by the last part of the path, with the notice that follows. */
export const CHANGES = { role: 'role', disable: 'disabled', enable: 'enabled', remove: 'removed' } as const;
type Change = (visit: Visit, role: string) => Promise<void>;

/** Where users are administered: the page of a tenant's users, or the operators' page of all. */
export type UserPlace = Place & {
  lead: (visit: Visit) => string;
  removed: string;
  filters: readonly Filter[];
  find: (visit: Visit, wanted: Wanted) => Promise<ListedUser[]>;
  empty: Empty;
  maxInvitations: number;
  roles: readonly Option[];
  firstRole: string;
  removalOf: (visit: Visit) => Promise<{ email: string; text: string }>;
  changes: Record<keyof typeof CHANGES, Change>;
};

export const LIST_QUERY = ['find', 'tenant', 'page'];

export function listHref(visit: Visit, { path }: Place, more: Record<string, string> = {}): string {
  const part = Object.fromEntries(LIST_QUERY.map((name) => [name, visit.query(name)]));
  return hrefWith(visit.at(path), { ...part, ...more });
}

/** An operator administers all users; on the page of a tenant, operators too administer its users only. */
export function authorityOf({ actor, tenantId, viewer }: Visit): Authority {
  return { actor, tenantId, userId: viewer.userId };
}

function tenantAuthority(visit: Visit): TenantAuthority {
  return { ...authorityOf(visit), tenantId: visit.waba.tenantId };
}

export const TENANT_USERS: UserPlace = {
  path: '/portal/w/:wabaId/users',
  access: PAGES.admin,
  active: 'users',
  lead: ({ waba }) => `The users of ${waba.businessName}, for all its WABAs.`,
  removed: 'The user no longer belongs to this tenant.',
  filters: [],
  find: async ({ context, waba }) => (await listMembers(context.database, waba.tenantId)).map(listedMember),
  empty: { title: 'No users yet', text: 'Invite a user below.' },
  maxInvitations: Number.MAX_SAFE_INTEGER,
  roles: [
    { value: 'member', label: 'Member: sees everything, changes nothing' },
    { value: 'admin', label: 'Administrator: changes webhooks, keys and users' },
  ],
  firstRole: 'member',
  removalOf: async ({ context, waba, id }) => {
    const member = (await listMembers(context.database, waba.tenantId)).find((one) => one.id === id);
    if (member === undefined) throw pageNotFound();
    const { email } = member;
    const text = `${email} loses all access to ${waba.businessName} at once. Only a new invitation restores it.`;
    return { email, text };
  },
  changes: {
    role: async (visit, role) => await changeRole(visit.context, tenantAuthority(visit), visit.id, role),
    disable: async (visit) => await disableMember(visit.context, tenantAuthority(visit), visit.id),
    enable: async (visit) => await enableMember(visit.context, tenantAuthority(visit), visit.id),
    remove: async (visit) => await removeMember(visit.context, tenantAuthority(visit), visit.id),
  },
};

function listedMember({ disabledAt, isLocked, role, ...member }: Member): ListedUser {
  const status = disabledAt === null ? badge('good', 'active') : badge('off', 'disabled');
  return {
    ...member,
    role,
    roles: role,
    isDisabled: disabledAt !== null,
    status: isLocked ? badge('off', 'locked by the operator') : status,
  };
}

export const ALL_USERS: UserPlace = {
  path: '/portal/operator/users',
  access: PAGES.operator,
  active: 'operator/users',
  lead: () =>
    'All accounts: operators, and the users of all tenants. An e-mail address can have several accounts.',
  removed: 'The account is removed.',
  filters: [
    { name: 'find', label: 'Name, e-mail, business', type: 'search', maxLength: 256 },
    {
      name: 'tenant',
      id: 'of-tenant',
      label: 'Tenant',
      widget: 'list',
      options: async (visit) => [{ value: '', label: 'All' }, ...(await tenantOptions(visit))],
    },
  ],
  find: async ({ context }, { filters: { find = '', tenant = '' } }) => {
    const needle = find.trim().toLowerCase();
    const isMeant = ({ email, name, memberships }: User) =>
      (tenant === '' || memberships.some(({ tenantId }) => tenantId === tenant)) &&
      [email, name, ...memberships.map(({ businessName }) => businessName)].some((text) =>
        text.toLowerCase().includes(needle),
      );
    return (await listUsers(context.database)).filter(isMeant).map(listedAccount);
  },
  empty: { title: 'Nothing found', text: 'No user matches these filters.' },
  maxInvitations: 20,
  roles: [
    { value: 'admin', label: 'Administrator: changes webhooks, keys and users of the tenant' },
    { value: 'member', label: 'Member: sees everything of the tenant, changes nothing' },
    { value: 'operator', label: 'Operator: sees and changes everything, of every tenant' },
  ],
  firstRole: 'admin',
  removalOf: async (visit) => {
    const { id, email, memberships } = await userNamed(visit.context, visit.id);
    const from = memberships.map(({ businessName }) => businessName).join(', ') || 'the operator’s pages';
    const text = `The account ${email} (user ${id}) ends, and with it all access to ${from}, at once.`;
    return { email, text };
  },
  changes: {
    role: changeOnlyRole,
    disable: async (visit) => await disableUser(visit.context, authorityOf(visit), visit.id),
    enable: async (visit) => await enableUser(visit.context, authorityOf(visit), visit.id),
    remove: async (visit) => await removeUser(visit.context, authorityOf(visit), visit.id),
  },
};

function listedAccount({
  id,
  email,
  name,
  lastSignInAt,
  disabledAt,
  isOperator,
  memberships,
}: User): ListedUser {
  const [only] = memberships;
  const roles = [...(isOperator ? ['operator'] : []), ...memberships.map(membershipText)];
  const isActive = isOperator || memberships.some(({ isDisabled }) => !isDisabled);
  const status = isActive ? badge('good', 'active') : badge('off', 'disabled by the tenant');
  return {
    id,
    email,
    name,
    lastSignInAt,
    isDisabled: disabledAt !== null,
    roles: html`${roles.map((role) => html`<div>${role}</div>`)}`,
    status: disabledAt === null ? status : badge('off', 'disabled'),
    role: memberships.length === 1 && only !== undefined ? only.role : null,
  };
}

function membershipText({ role, businessName, isDisabled }: Membership): string {
  return `${role} of ${businessName}${isDisabled ? ' (disabled)' : ''}`;
}

/** For an account with one tenant; of several, each tenant's own page of users changes the role. */
async function changeOnlyRole(visit: Visit, role: string): Promise<void> {
  const { context, id } = visit;
  const { memberships } = await userNamed(context, id);
  const [only] = memberships;
  if (only === undefined || memberships.length > 1) {
    throw invalidValue(
      'This account has no role in exactly one tenant; open the page of the tenant.',
      'role',
    );
  }
  await changeRole(context, { ...authorityOf(visit), tenantId: only.tenantId }, id, role);
}

/** A longer list helps no one; a tenant's own page leads here with the tenant chosen. */
const MAX_TENANTS = 200;

/** The tenants to choose from, with the one that is chosen in any case. */
export async function tenantOptions(visit: Visit): Promise<Option[]> {
  const chosen = visit.query('tenant');
  return (await listTenants(visit.context.database))
    .filter(({ userId }, index) => index < MAX_TENANTS || userId === chosen)
    .map(({ userId, businessName }) => ({ value: userId, label: `${businessName} (${userId})` }));
}
