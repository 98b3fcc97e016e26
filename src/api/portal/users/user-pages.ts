import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { listTenants, type TenantSummary } from '../../../accounts/accounts.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { invalidValue, type RequestError } from '../../../platform/request-input.ts';
import { invitationsOf, inviteUser } from '../../../users/invitations.ts';
import { changeRole } from '../../../users/members.ts';
import type { Authority } from '../../../users/user-authority.ts';
import type { Membership, User } from '../../../users/user-store.ts';
import { allUsers, disableUser, enableUser, removeUser, userNamed } from '../../../users/users.ts';
import { PAGES } from '../access/page-access.ts';
import { orShown } from '../access/page-error.ts';
import { sendPage } from '../access/send-page.ts';
import { actorOf, type Viewer, viewerOf } from '../access/viewer.ts';
import { badge } from '../components/badge.ts';
import { actionButton, postForm, selectField, textField } from '../components/form.ts';
import { numberedPage, numberedPager } from '../components/pager.ts';
import { dataTable, emptyState } from '../components/table.ts';
import { timeAgo } from '../components/time.ts';
import { formLine } from '../form-values.ts';
import { html, type Markup } from '../markup.ts';
import { hrefWith } from '../navigation.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { DONE, linkTools, sendOneTimeLink, type UserPlace, userActions } from './user-actions.ts';
import { userSessionPages } from './user-sessions-page.ts';
import { invitationTable, type ListPlace, roleButton } from './user-tables.ts';

const text = Type.Optional(Type.String({ maxLength: 256 }));
const querystring = Type.Object({ done: text, find: text, tenant: text, page: text });

/** /portal/operator/users: all accounts, and invitations for operators and users of any tenant. */
export function operatorUserPages(app: PortalApp, context: PortalContext): void {
  app.get(USERS, { config: PAGES.operator, schema: { querystring } }, async (request, reply) =>
    showUsers(request, reply, context, request.query, EMPTY_INVITE),
  );

  const place = operatorPlace(context);
  const body = Type.Object({ email: formLine(), role: formLine(), tenant: formLine() });
  const schema = { querystring, body };
  app.post(`${USERS}/invite`, { config: PAGES.operator, schema }, async (request, reply) => {
    const { email, role, tenant } = request.body;
    return await orShown(
      async () => {
        const given = { email, role, tenantId: tenant === '' ? null : tenant };
        const made = await inviteUser(linkTools(context), authorityOf(request), given);
        return sendOneTimeLink(request, reply, context, place, made);
      },
      (error) => showUsers(request, reply, context, request.query, { email, role, tenant, error }),
    );
  });
  userActions(app, context, place);
  userSessionPages(app, context, place);
}

function operatorPlace({ database }: PortalContext): UserPlace {
  const tools = { database };
  return {
    route: USERS,
    config: PAGES.operator,
    active: 'operator/users',
    querystring,
    listHref: (request, done) => usersHref({ ...(request.query as Wanted), done }),
    sessionsHref: (_request, id, done) => hrefWith(`${USERS}/${id}/sessions`, { done }),
    authorityOf,
    removalOf: async (_request, named) => {
      const { id, email, memberships } = await userNamed(tools, named);
      const from = memberships.map(({ businessName }) => businessName).join(', ') || 'the operator’s pages';
      const text = `The account ${email} (user ${id}) ends, and with it all access to ${from}, at once.`;
      return { email, text };
    },
    changes: {
      role: (request, id, role) => changeOnlyRole(database, authorityOf(request), id, role),
      disable: (request, id) => disableUser(tools, authorityOf(request), id),
      enable: (request, id) => enableUser(tools, authorityOf(request), id),
      remove: (request, id) => removeUser(tools, authorityOf(request), id),
    },
  };
}

/** For an account with one tenant; of several, each tenant's own page of users changes the role. */
async function changeOnlyRole(
  database: Database,
  authority: Authority,
  id: string,
  role: string,
): Promise<void> {
  const { memberships } = await userNamed({ database }, id);
  const [only] = memberships;
  if (only === undefined || memberships.length > 1) {
    throw invalidValue(
      'This account has no role in exactly one tenant; open the page of the tenant.',
      'role',
    );
  }
  await changeRole({ database }, { ...authority, tenantId: only.tenantId }, id, role);
}

/** An operator administers all users. */
function authorityOf(request: FastifyRequest): Authority {
  return { actor: actorOf(request), tenantId: null, userId: viewerOf(request).userId };
}

/** All accounts with what an operator can do about them, by forms under `path`. */
function accountTable(place: ListPlace, users: readonly User[]): Markup {
  const labels = ['E-mail address', 'Name', 'Role', 'Status', 'Last sign-in', ''];
  return dataTable(
    'Users',
    labels,
    users.map((user) => [
      html`<span class="break">${user.email}</span> <span class="faint">user ${user.id}</span>`,
      user.name,
      rolesOf(user),
      stateOf(user),
      timeAgo(user.lastSignInAt, place.now, 'never'),
      user.id === place.viewer.userId ? 'you' : accountActions(place, user),
    ]),
  );
}

function rolesOf({ isOperator, memberships }: User): Markup {
  const roles = [...(isOperator ? ['operator'] : []), ...memberships.map(membershipText)];
  return html`${roles.map((role) => html`<div>${role}</div>`)}`;
}

function membershipText({ role, businessName, isDisabled }: Membership): string {
  return `${role} of ${businessName}${isDisabled ? ' (disabled)' : ''}`;
}

function stateOf({ disabledAt, memberships, isOperator }: User): Markup {
  if (disabledAt !== null) return badge('off', 'disabled');
  const isActive = isOperator || memberships.some(({ isDisabled }) => !isDisabled);
  return isActive ? badge('good', 'active') : badge('off', 'disabled by the tenant');
}

function accountActions({ viewer, path, query, hasPasswords }: ListPlace, user: User): Markup {
  const { id, memberships, disabledAt } = user;
  const to = (action: string) => `${path}/${id}/${action}${query}`;
  const remove = html`<a class="button" href="${to('remove')}">Remove</a>`;
  if (disabledAt !== null) {
    return html`<div class="buttons">${actionButton(viewer, to('enable'), 'Enable')}${remove}</div>`;
  }
  const [only] = memberships;
  const role =
    only !== undefined &&
    memberships.length === 1 &&
    roleButton(viewer, to('role'), only.role === 'admin' ? 'member' : 'admin');
  return html`<div class="buttons">${role}<a class="button" href="${path}/${id}/sessions">Sessions</a>${hasPasswords && actionButton(viewer, to('password-link'), 'Password link')}${actionButton(viewer, to('disable'), 'Disable', 'danger')}${remove}</div>`;
}

const USERS = '/portal/operator/users';

/** So many users, and pending invitations, keep the page below 100 KB. */
const PAGE_SIZE = 40;
const MAX_INVITATIONS = 20;

/** A longer list helps no one; a tenant's own page leads here with the tenant chosen. */
const MAX_TENANTS = 200;

const ALL_DONE = { ...DONE, removed: 'The account is removed.' };

/** What is looked for; `tenant` is a tenant id. */
type Wanted = {
  done?: string | undefined;
  find?: string | undefined;
  tenant?: string | undefined;
  page?: string | undefined;
};

/** An invitation as it was filled in. */
type InviteForm = { email: string; role: string; tenant: string; error: RequestError | null };

const EMPTY_INVITE: InviteForm = { email: '', role: 'admin', tenant: '', error: null };

/** The page with all users that are wanted, pending invitations, and the form to invite. */
async function showUsers(
  request: FastifyRequest,
  reply: FastifyReply,
  { database, now, config }: PortalContext,
  { find = '', tenant = '', page }: Wanted,
  form: InviteForm,
): Promise<FastifyReply> {
  const viewer = viewerOf(request);
  const [everybody, invitations, tenants] = await Promise.all([
    allUsers({ database }),
    invitationsOf({ database }, null),
    listTenants(database),
  ]);
  const needle = find.trim().toLowerCase();
  const found = everybody.filter(({ email, name, memberships }) => {
    if (tenant !== '' && !memberships.some(({ tenantId }) => tenantId === tenant)) return false;
    const texts = [email, name, ...memberships.map(({ businessName }) => businessName)];
    return texts.some((text) => text.toLowerCase().includes(needle));
  });
  const shown = numberedPage(found, page, PAGE_SIZE);
  const at = new Date(now());
  const query = usersHref({ find, tenant, page }).slice(USERS.length);
  const hasPasswords = config.portal.passwordSignIn;
  const shared = { viewer, path: USERS, now: at, query, hasPasswords };
  const hrefOf = (number: number) => usersHref({ find, tenant, page: String(number) });
  const rest = invitations.length - MAX_INVITATIONS;
  const chosen = form.tenant === '' ? tenant : form.tenant;
  const view = {
    title: 'Users',
    active: 'operator/users',
    lead: 'All accounts: operators, and the users of all tenants. An e-mail address can have several accounts.',
    done: ALL_DONE,
    body: html`${filters(find, tenant, tenants)}
${found.length === 0 ? nobody() : accountTable(shared, shown.rows)}${numberedPager(shown, hrefOf)}
<h2>Pending invitations</h2>
${invitationTable(shared, invitations.slice(0, MAX_INVITATIONS), { hasTenants: true })}
${rest > 0 && html`<p class="hint">${rest} older ones are not shown; their tenants’ pages list them.</p>`}
<section class="card"><h2>Invite a user</h2>${inviteForm(viewer, `${USERS}/invite${query}`, tenants, { ...form, tenant: chosen })}</section>`,
  };
  return sendPage(reply, view, form.error === null ? 200 : 422);
}

/** The page with what was looked for. */
function usersHref({ find, tenant, page, done }: Wanted): string {
  return hrefWith(USERS, { find, tenant, page, done });
}

function nobody(): Markup {
  return emptyState(
    'Nothing found',
    'No user matches these filters.',
    html`<a href="${USERS}">Show all users</a>`,
  );
}

/** The tenants to choose from, with the one that is chosen in any case. */
function tenantOptions(tenants: readonly TenantSummary[], chosen: string) {
  return tenants
    .filter(({ userId }, index) => index < MAX_TENANTS || userId === chosen)
    .map(({ userId, businessName }) => ({ value: userId, label: `${businessName} (${userId})` }));
}

function filters(find: string, tenant: string, tenants: readonly TenantSummary[]): Markup {
  const label = 'Name, e-mail, business';
  const options = [{ value: '', label: 'All' }, ...tenantOptions(tenants, tenant)];
  const select = options.map(
    ({ value, label: text }) =>
      html`<option value="${value}" ${value === tenant && html`selected`}>${text}</option>`,
  );
  return html`<form class="filters" method="get" action="${USERS}">${textField({ label, name: 'find', value: find, type: 'search', maxLength: 256 })}
<div class="field"><label for="of-tenant">Tenant</label><select id="of-tenant" name="tenant">${select}</select></div><button>Find</button></form>`;
}

const ROLES = [
  { value: 'admin', label: 'Administrator: changes webhooks, keys and users of the tenant' },
  { value: 'member', label: 'Member: sees everything of the tenant, changes nothing' },
  { value: 'operator', label: 'Operator: sees and changes everything, of every tenant' },
];

function inviteForm(
  viewer: Viewer,
  action: string,
  tenants: readonly TenantSummary[],
  form: InviteForm,
): Markup {
  const { email, role, tenant, error } = form;
  const field =
    error === null ? null : (error.param ?? (error.code === 'unknown_tenant' ? 'tenant' : 'email'));
  const about = (name: string) => (field === name ? (error?.message ?? null) : null);
  const options = [{ value: '', label: 'None (for operators)' }, ...tenantOptions(tenants, tenant)];
  return postForm(
    viewer,
    action,
    html`${textField({ label: 'E-mail address', name: 'email', type: 'email', value: email, required: true, error: about('email') })}
${selectField({ label: 'Role', name: 'role', value: role, options: ROLES, error: about('role') })}
${selectField({ label: 'Tenant', name: 'tenant', value: tenant, options, error: about('tenant') })}
<div class="buttons"><button class="primary">Create an invitation link</button></div>`,
  );
}
