import type { FastifyReply, FastifyRequest } from 'fastify';
import { listTenants, type TenantSummary } from '../../../accounts/account-list.ts';
import type { AccountError } from '../../../platform/account-error.ts';
import { invitationsOf } from '../../../users/invitations.ts';
import { allUsers } from '../../../users/users.ts';
import { sendPage } from '../access/send-page.ts';
import { type Viewer, viewerOf } from '../access/viewer.ts';
import { emptyState } from '../components/empty-state.ts';
import { postForm, selectField, textField } from '../components/form.ts';
import { noticeAfter } from '../components/notice.ts';
import { numberedPage, numberedPager } from '../components/numbered-pages.ts';
import { html, type Markup } from '../markup.ts';
import type { PortalContext } from '../portal-app.ts';
import { accountTable } from './account-table.ts';
import { invitationTable } from './user-tables.ts';

export const USERS = '/portal/operator/users';

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
export type Wanted = {
  done?: string | undefined;
  find?: string | undefined;
  tenant?: string | undefined;
  page?: string | undefined;
};

/** An invitation as it was filled in. */
type InviteForm = { email: string; role: string; tenant: string; error: AccountError | null };

export const EMPTY_INVITE: InviteForm = { email: '', role: 'admin', tenant: '', error: null };

/** The page with all users that are wanted, open invitations, and the form to invite. */
export async function showUsers(
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
export function usersHref({ find, tenant, page, done }: Wanted): string {
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
