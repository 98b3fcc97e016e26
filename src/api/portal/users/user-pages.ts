import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { listTenants, type TenantSummary } from '../../../accounts/account-list.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { invalidValue, RequestError } from '../../../platform/request-input.ts';
import {
  invitationsOf,
  inviteUser,
  type MadeInvitation,
  withdrawInvitation,
} from '../../../users/invitations.ts';
import { changeRole } from '../../../users/members.ts';
import { makePasswordLink } from '../../../users/password-links.ts';
import type { Authority } from '../../../users/user-authority.ts';
import type { Membership, User } from '../../../users/user-store.ts';
import { allUsers, disableUser, enableUser, removeUser, userNamed } from '../../../users/users.ts';
import { accountObjectId } from '../../external/object-id.ts';
import { PAGES } from '../access/page-access.ts';
import { sendPage } from '../access/send-page.ts';
import { actorOf, type Viewer, viewerOf } from '../access/viewer.ts';
import { badge } from '../components/badge.ts';
import { actionButton, postForm, selectField, textField } from '../components/form.ts';
import { noticeAfter } from '../components/notice.ts';
import { numberedPage, numberedPager } from '../components/pager.ts';
import { dataTable, emptyState } from '../components/table.ts';
import { timeAgo } from '../components/time.ts';
import { EMPTY_FORM, formLine } from '../form-values.ts';
import { html, type Markup } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { invitationTable, type ListPlace, oneTimeLink, removalQuestion, roleButton } from './user-tables.ts';

const CHANGES = { role: 'role', disable: 'disabled', enable: 'enabled', remove: 'removed' } as const;

const text = Type.Optional(Type.String({ maxLength: 256 }));
const querystring = Type.Object({ done: text, find: text, tenant: text, page: text });

const OF_ONE = { params: Type.Object({ id: Type.String() }), querystring, body: EMPTY_FORM };

/** /portal/operator/users: everybody who may sign in, and invitations for operators and users of any tenant. */
export function operatorUserPages(app: PortalApp, context: PortalContext): void {
  const { database } = context;
  app.get(USERS, { config: PAGES.operator, schema: { querystring } }, async (request, reply) =>
    showUsers(request, reply, context, request.query, EMPTY_INVITE),
  );

  const body = Type.Object({ email: formLine(), role: formLine(), tenant: formLine() });
  const schema = { querystring, body };
  app.post(`${USERS}/invite`, { config: PAGES.operator, schema }, async (request, reply) => {
    const { email, role, tenant } = request.body;
    try {
      const given = { email, role, tenantId: tenant === '' ? null : tenant };
      const made = await inviteUser({ database }, authorityOf(request), given);
      return showLink(request, reply, context, { made, wanted: request.query });
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      return await showUsers(request, reply, context, request.query, { email, role, tenant, error });
    }
  });

  app.post(
    `${USERS}/:id/password-link`,
    { config: PAGES.operator, schema: OF_ONE },
    async (request, reply) => {
      const made = await makePasswordLink(
        { database },
        authorityOf(request),
        accountObjectId(request.params.id),
      );
      return showLink(request, reply, context, { made, wanted: request.query });
    },
  );
  removalPage(app, context);
  userChanges(app, context);
}

function userChanges(app: PortalApp, { database }: PortalContext): void {
  const withdraw = `${USERS}/invitations/:id/withdraw`;
  app.post(withdraw, { config: PAGES.operator, schema: OF_ONE }, async (request, reply) => {
    await withdrawInvitation({ database }, authorityOf(request), accountObjectId(request.params.id));
    return reply.redirect(usersHref({ ...request.query, done: 'withdrawn' }), 303);
  });
  const schema = {
    params: OF_ONE.params,
    querystring,
    body: Type.Object({ role: Type.Optional(formLine()) }),
  };
  for (const change of ['role', 'disable', 'enable', 'remove'] as const) {
    app.post(`${USERS}/:id/${change}`, { config: PAGES.operator, schema }, async (request, reply) => {
      const authority = authorityOf(request);
      const id = accountObjectId(request.params.id);
      if (change === 'role') await changeOnlyRole(database, authority, id, request.body.role ?? '');
      if (change === 'disable') await disableUser({ database }, authority, id);
      if (change === 'enable') await enableUser({ database }, authority, id);
      if (change === 'remove') await removeUser({ database }, authority, id);
      return reply.redirect(usersHref({ ...request.query, done: CHANGES[change] }), 303);
    });
  }
}

/** In the one tenant that somebody belongs to; of several, the tenant's own page of users shows the role. */
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

/** Asks first. */
function removalPage(app: PortalApp, { database }: PortalContext): void {
  const { params } = OF_ONE;
  const schema = { params, querystring };
  app.get(`${USERS}/:id/remove`, { config: PAGES.operator, schema }, async (request, reply) => {
    const { id, email, memberships } = await userNamed({ database }, accountObjectId(request.params.id));
    const backPath = usersHref(request.query);
    const action = `${USERS}/${id}/remove${backPath.slice(USERS.length)}`;
    const from = memberships.map(({ businessName }) => businessName).join(', ') || 'the operator’s pages';
    const text = `The account ${email} (user ${id}) ends, and with it all access to ${from}, at once.`;
    const viewer = viewerOf(request);
    return sendPage(reply, {
      title: `Remove ${email}?`,
      viewer,
      active: 'operator/users',
      trail: [{ label: 'Users', href: backPath }],
      body: removalQuestion(viewer, { action, backPath, text }),
    });
  });
}

/** An operator administers everybody's users. */
function authorityOf(request: FastifyRequest): Authority {
  return { actor: actorOf(request), tenantId: null, userId: viewerOf(request).userId };
}

/** The one page that shows a link: it is in no URL, in no log, and cannot be opened again. */
function showLink(
  request: FastifyRequest,
  reply: FastifyReply,
  { publicUrl }: PortalContext,
  { made, wanted }: { made: MadeInvitation; wanted: Wanted },
): FastifyReply {
  const path = usersHref({ ...wanted, done: undefined });
  return sendPage(reply, {
    title: 'One-time link',
    viewer: viewerOf(request),
    active: 'operator/users',
    trail: [{ label: 'Users', href: path }],
    body: oneTimeLink(publicUrl, made, path),
  });
}

/** All accounts with what an operator can do about them, by forms under `path`. */
function accountTable(place: ListPlace, users: readonly User[]): Markup {
  const labels = ['E-mail address', 'Name', 'Role', 'Status', 'Last sign-in', ''];
  return dataTable(
    'Users',
    labels.map((label) => ({ label })),
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

function accountActions({ viewer, path, query }: ListPlace, user: User): Markup {
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
  return html`<div class="buttons">${role}${actionButton(viewer, to('password-link'), 'Password link')}${actionButton(viewer, to('disable'), 'Disable', 'danger')}${remove}</div>`;
}

const USERS = '/portal/operator/users';

/** So many users, and open invitations, keep the page below 100 KB. */
const PAGE_SIZE = 40;
const MAX_INVITATIONS = 20;

/** More than this nobody looks through; a tenant's own page leads here with the tenant chosen. */
const MAX_TENANTS = 200;

const DONE = {
  role: 'The role is changed. The user has to sign in again.',
  disabled: 'The user is disabled and signed out.',
  enabled: 'The user can sign in again.',
  removed: 'The account is removed.',
  withdrawn: 'The invitation is withdrawn. Its link no longer works.',
};

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

/** The page with all users that are wanted, open invitations, and the form to invite. */
async function showUsers(
  request: FastifyRequest,
  reply: FastifyReply,
  { database, now }: PortalContext,
  { done, find = '', tenant = '', page }: Wanted,
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
  const shared = { viewer, path: USERS, now: at, query };
  const hrefOf = (number: number) => usersHref({ find, tenant, page: String(number) });
  const rest = invitations.length - MAX_INVITATIONS;
  const chosen = form.tenant === '' ? tenant : form.tenant;
  const view = {
    title: 'Users',
    viewer,
    active: 'operator/users',
    lead: 'All accounts: operators, and the users of all tenants. An e-mail address can have several accounts.',
    notice: noticeAfter(done, DONE),
    body: html`${filters(find, tenant, tenants)}
${found.length === 0 ? nobody() : accountTable(shared, shown.rows)}${numberedPager(shown, hrefOf)}
<h2>Open invitations</h2>
${invitationTable(shared, invitations.slice(0, MAX_INVITATIONS), { hasTenants: true })}
${rest > 0 && html`<p class="hint">${rest} older ones are not shown; their tenants’ pages list them.</p>`}
<section class="card"><h2>Invite a user</h2>${inviteForm(viewer, `${USERS}/invite${query}`, tenants, { ...form, tenant: chosen })}</section>`,
  };
  return sendPage(reply, view, form.error === null ? 200 : 422);
}

/** The page with what was looked for. */
function usersHref({ find, tenant, page, done }: Wanted): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries({ find, tenant, page, done })) {
    if (value) parameters.set(name, value);
  }
  return parameters.size === 0 ? USERS : `${USERS}?${parameters}`;
}

function nobody(): Markup {
  return emptyState('Nothing found', 'No user matches.', html`<a href="${USERS}">Show all users</a>`);
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
