import type { Invitation } from '../../../database/invitations.ts';
import type { User } from '../../../database/users.ts';
import { badge } from '../components/badge.ts';
import { emptyState } from '../components/empty-state.ts';
import { actionButton } from '../components/form.ts';
import { dataTable } from '../components/table.ts';
import { timeAgo } from '../components/time.ts';
import { html, type Markup } from '../markup.ts';
import { csrfField } from './csrf-field.ts';
import type { Viewer } from './viewer.ts';

type ListedUser = User & { businessName?: string | null };

/**
 * Users with what can be done about them, by forms under `path`; `query` says which part of a list they lead back to.
 * With `hasTenants` it tells whose they are.
 */
export function userTable({
  viewer,
  path,
  users,
  now,
  hasTenants = false,
  query = '',
}: {
  viewer: Viewer;
  path: string;
  users: readonly ListedUser[];
  now: Date;
  hasTenants?: boolean;
  query?: string;
}): Markup {
  if (users.length === 0) {
    return emptyState('No users yet', 'Invite somebody below: the link that you get is all that is needed.');
  }
  const labels = [
    'E-mail address',
    'Name',
    ...(hasTenants ? ['Tenant'] : []),
    'Role',
    'State',
    'Last sign-in',
    '',
  ];
  return dataTable(
    'Users',
    labels.map((label) => ({ label })),
    users.map((user) => [
      html`<span class="break">${user.email}</span>`,
      user.name,
      ...(hasTenants ? [user.businessName ?? '–'] : []),
      user.role,
      user.disabledAt === null ? badge('good', 'active') : badge('off', 'disabled'),
      timeAgo(user.lastSignInAt, now, 'never'),
      user.id === viewer.userId ? 'you' : userActions(viewer, { path, query }, user),
    ]),
  );
}

function userActions(
  viewer: Viewer,
  { path, query }: { path: string; query: string },
  { id, role, disabledAt }: User,
): Markup {
  const to = (action: string) => `${path}/${id}/${action}${query}`;
  if (disabledAt !== null) return actionButton(viewer, to('enable'), 'Enable');
  const other = role === 'admin' ? 'member' : 'admin';
  return html`<div class="buttons">${role !== 'operator' && roleButton(viewer, to('role'), other)}${actionButton(viewer, to('password-link'), 'Password link')}${actionButton(viewer, to('disable'), 'Disable', 'danger')}</div>`;
}

function roleButton(viewer: Viewer, action: string, role: 'admin' | 'member'): Markup {
  return html`<form method="post" action="${action}" class="inline">${csrfField(viewer)}<input type="hidden" name="role" value="${role}"><button class="secondary">Make ${role}</button></form>`;
}

/** Invitations that nobody has used yet. */
export function invitationTable({
  viewer,
  path,
  invitations,
  now,
  hasTenants = false,
  query = '',
}: {
  viewer: Viewer;
  path: string;
  invitations: readonly Invitation[];
  now: Date;
  hasTenants?: boolean;
  query?: string;
}): Markup {
  if (invitations.length === 0)
    return emptyState('None open', 'Links that nobody has used yet are listed here.');
  const labels = ['E-mail address', ...(hasTenants ? ['Tenant'] : []), 'For', 'Made by', 'Expires', ''];
  return dataTable(
    'Open invitations',
    labels.map((label) => ({ label })),
    invitations.map((invitation) => [
      html`<span class="break">${invitation.email}</span>`,
      ...(hasTenants ? [invitation.businessName ?? '–'] : []),
      invitation.userId === null ? `role ${invitation.role}` : 'a new password',
      invitation.invitedBy,
      timeAgo(invitation.expiresAt, now),
      actionButton(viewer, `${path}/invitations/${invitation.id}/withdraw${query}`, 'Withdraw'),
    ]),
  );
}
