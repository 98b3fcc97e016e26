import { mailerOf } from '../../../features/mail/mails.ts';
import { type Invitation, listInvitations } from '../../../features/users/invitation-store.ts';
import {
  inviteUser,
  type LinkTools,
  type MadeInvitation,
  withdrawInvitation,
} from '../../../features/users/invitations.ts';
import { makePasswordLink } from '../../../features/users/password-links.ts';
import { copyable } from '../components/copyable.ts';
import { actionButton, csrfField } from '../components/form.ts';
import { emptyState } from '../components/table.ts';
import { exactTime, timeAgo } from '../components/time.ts';
import { formLine } from '../form-values.ts';
import { action } from '../kits/action.ts';
import { confirmationPage } from '../kits/confirmation-page.ts';
import type { Option } from '../kits/form-fields.ts';
import { type Form, formAction, formCard, type Refused } from '../kits/form-page.ts';
import { type ListColumn, listPage, rowTable } from '../kits/list-page.ts';
import type { Next } from '../kits/view-page.ts';
import type { Visit } from '../kits/visit.ts';
import { type Child, html, type Markup } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import {
  ALL_USERS,
  authorityOf,
  CHANGES,
  LIST_QUERY,
  type ListedUser,
  listHref,
  TENANT_USERS,
  tenantOptions,
  type UserPlace,
} from './user-places.ts';
import { userSessionPages } from './user-sessions-page.ts';

const DONE = {
  role: 'The role is changed. The user has to sign in again.',
  disabled: 'The user is disabled and signed out.',
  enabled: 'The user can sign in again.',
  mailed:
    'The link is on its way by e-mail. It works once: an invitation for seven days, a link for a new password for one day.',
  withdrawn: 'The invitation is withdrawn. Its link no longer works.',
};

export function userPages(app: PortalApp, context: PortalContext): void {
  for (const place of [TENANT_USERS, ALL_USERS]) {
    usersPage(app, context, place);
    userActions(app, context, place);
    userSessionPages(app, context, place);
  }
}

/** So many users, with their invitations, keep the page below 100 KB. */
const PAGE_SIZE = 40;

type Tenants = { tenants: readonly Option[] };

function usersPage(app: PortalApp, context: PortalContext, place: UserPlace): void {
  const form = inviteForm(place);
  const load = async (visit: Visit) => ({
    tenants: place === ALL_USERS ? await tenantOptions(visit) : [],
  });
  const below = async (visit: Visit, refused: Refused | null) => {
    const [subject, invitations] = await Promise.all([load(visit), invitationPart(visit, place)]);
    const search = listHref(visit, place).slice(visit.path.length);
    return html`${invitations}
${formCard(visit, form, { subject, refused, search })}`;
  };
  const show = listPage(app, context, {
    ...place,
    title: 'Users',
    pageSize: PAGE_SIZE,
    filterLabel: 'Find',
    below,
    done: { ...DONE, removed: place.removed },
    columns: userColumns(place),
  });
  formAction(app, context, {
    access: place.access,
    active: place.active,
    form,
    load,
    show,
    query: LIST_QUERY,
  });
}

function userColumns(place: UserPlace): ListColumn<ListedUser>[] {
  return [
    {
      label: 'E-mail address',
      cell: ({ email, id }) =>
        html`<span class="break">${email}</span>${place === ALL_USERS && html` <span class="faint">user ${id}</span>`}`,
    },
    { label: 'Name', cell: ({ name }) => name },
    { label: 'Role', cell: ({ roles }) => roles },
    { label: 'Status', cell: ({ status }) => status },
    { label: 'Last sign-in', cell: ({ lastSignInAt }, { now }) => timeAgo(lastSignInAt, now, 'never') },
    { label: '', cell: (user, visit) => userButtons(user, visit, place) },
  ];
}

function userButtons({ id, role, isDisabled }: ListedUser, visit: Visit, place: UserPlace): Child {
  const { viewer, path, context } = visit;
  if (id === viewer.userId) return 'you';
  const search = listHref(visit, place).slice(path.length);
  const to = (change: string) => `${path}/${id}/${change}${search}`;
  const remove = html`<a class="button" href="${to('remove')}">Remove</a>`;
  if (isDisabled)
    return html`<div class="buttons">${actionButton(viewer, to('enable'), 'Enable')}${remove}</div>`;
  const other = role === 'admin' ? 'member' : 'admin';
  const roleButton =
    role !== null &&
    html`<form method="post" action="${to('role')}" class="inline">${csrfField(viewer)}<input type="hidden" name="role" value="${other}"><button class="secondary">Make ${other}</button></form>`;
  return html`<div class="buttons">${roleButton}<a class="button" href="${path}/${id}/sessions">Sessions</a>${context.config.portal.passwordSignIn && actionButton(viewer, to('password-link'), 'Password link')}${actionButton(viewer, to('disable'), 'Disable', 'danger')}${remove}</div>`;
}

async function invitationPart(visit: Visit, place: UserPlace): Promise<Markup> {
  const invitations = await listInvitations(visit.context.database, visit.tenantId);
  const rest = invitations.length - place.maxInvitations;
  const search = listHref(visit, place).slice(visit.path.length);
  const tenant: ListColumn<Invitation> = {
    label: 'Tenant',
    cell: ({ businessName }) => businessName ?? '–',
  };
  const columns: ListColumn<Invitation>[] = [
    { label: 'E-mail address', cell: ({ email }) => html`<span class="break">${email}</span>` },
    ...(place === ALL_USERS ? [tenant] : []),
    { label: 'Purpose', cell: ({ role }) => (role === null ? 'a new password' : `role ${role}`) },
    { label: 'Created by', cell: ({ invitedBy }) => invitedBy },
    { label: 'Expires', cell: ({ expiresAt }, { now }) => timeAgo(expiresAt, now) },
    {
      label: '',
      cell: ({ id }, { viewer, path }) =>
        actionButton(viewer, `${path}/invitations/${id}/withdraw${search}`, 'Withdraw'),
    },
  ];
  const table =
    invitations.length === 0
      ? emptyState(
          'No pending invitations',
          'Invitation and password links that are not used yet appear here.',
        )
      : rowTable(
          visit,
          { caption: 'Pending invitations', columns },
          invitations.slice(0, place.maxInvitations),
        );
  return html`<h2>Pending invitations</h2>
${table}
${rest > 0 && html`<p class="hint">${rest} older ones are not shown; their tenants’ pages list them.</p>`}`;
}

function inviteForm(place: UserPlace): Form<'email' | 'role' | 'tenant', Tenants> {
  const tenant = {
    name: 'tenant',
    label: 'Tenant',
    widget: 'list',
    options: ({ tenants }: Tenants) => [{ value: '', label: 'None (for operators)' }, ...tenants],
  } as const;
  return {
    action: `${place.path}/invite`,
    fields: [
      { name: 'email', label: 'E-mail address', type: 'email', required: true },
      { name: 'role', label: 'Role', widget: 'list', options: place.roles },
      ...(place === ALL_USERS ? [tenant] : []),
    ],
    values: (_, visit) => ({ role: place.firstRole, tenant: visit.query('tenant') }),
    heading: 'Invite a user',
    button: 'Create an invitation link',
    fieldOf: ({ param, code }) => param ?? (code === 'unknown_tenant' ? 'tenant' : 'email'),
    submit: async (visit, given) => {
      const tenantId = visit.tenantId ?? (given.text('tenant') || null);
      const invited = { email: given.text('email'), role: given.text('role'), tenantId };
      const made = await inviteUser(linkTools(visit.context), authorityOf(visit), invited);
      return oneTimeLink(visit, place, made);
    },
  };
}

function userActions(app: PortalApp, context: PortalContext, place: UserPlace): void {
  const { path, access, active, changes } = place;
  const query = LIST_QUERY;
  if (context.config.portal.passwordSignIn) {
    action(app, context, {
      path: `${path}/:id/password-link`,
      access,
      active,
      query,
      act: async (visit) =>
        oneTimeLink(visit, place, await makePasswordLink(linkTools(context), authorityOf(visit), visit.id)),
    });
  }
  action(app, context, {
    path: `${path}/invitations/:id/withdraw`,
    access,
    query,
    act: async (visit) => {
      await withdrawInvitation(context, authorityOf(visit), visit.id);
      return listHref(visit, place, { done: 'withdrawn' });
    },
  });
  for (const change of ['role', 'disable', 'enable'] as const) {
    action(app, context, {
      path: `${path}/:id/${change}`,
      access,
      query,
      fields: { role: formLine() },
      act: async (visit, given) => {
        await changes[change](visit, given.text('role'));
        return listHref(visit, place, { done: CHANGES[change] });
      },
    });
  }
  confirmationPage(app, context, {
    path: `${path}/:id/remove`,
    access,
    active,
    query,
    load: place.removalOf,
    title: ({ email }) => `Remove ${email}?`,
    trail: (visit) => [{ label: 'Users', href: listHref(visit, place) }],
    body: ({ text }) => html`<p>${text}</p><p>The audit log keeps the actions of this user.</p>`,
    button: 'Remove',
    act: async (visit) => {
      await changes.remove(visit, '');
      return listHref(visit, place, { done: CHANGES.remove });
    },
  });
}

function linkTools({ database, config, accounts }: PortalContext): LinkTools {
  return { database, mailer: mailerOf(config, accounts.secretBox) };
}

/** The one page that shows a link: it is in no URL and no log. One that goes by e-mail is not shown. */
function oneTimeLink(
  visit: Visit,
  place: UserPlace,
  { email, path, isMailed, expiresAt }: MadeInvitation,
): Next {
  if (isMailed) return listHref(visit, place, { done: 'mailed' });
  const back = listHref(visit, place);
  return {
    title: 'One-time link',
    trail: [{ label: 'Users', href: back }],
    body: html`<div class="card"><p>Send this link to <strong>${email}</strong>. It works once, until ${exactTime(expiresAt)}, and is not shown again.</p>
<p>${copyable(`${visit.context.publicUrl}${path}`)}</p></div>
<p><a class="button" href="${back}">Back to the users</a></p>`,
  };
}
