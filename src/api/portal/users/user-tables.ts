import type { Invitation } from '../../../users/invitation-store.ts';
import type { Member } from '../../../users/memberships.ts';
import type { Viewer } from '../access/viewer.ts';
import { badge } from '../components/badge.ts';
import { actionButton, csrfField } from '../components/form.ts';
import { dataTable, emptyState } from '../components/table.ts';
import { timeAgo } from '../components/time.ts';
import { html, type Markup } from '../markup.ts';

/** Where the forms of a list are, and which part of the list they lead back to. */
export type ListPlace = {
  viewer: Viewer;
  path: string;
  query: string;
  now: Date;
  /** Links for new passwords are of use. */
  hasPasswords: boolean;
};

/** The members of a tenant with what can be done about them, by forms under `path`. */
export function memberTable(place: ListPlace, members: readonly Member[]): Markup {
  if (members.length === 0) {
    return emptyState('No users yet', 'Invite a user below.');
  }
  const labels = ['E-mail address', 'Name', 'Role', 'Status', 'Last sign-in', ''];
  return dataTable(
    'Users',
    labels,
    members.map((member) => [
      html`<span class="break">${member.email}</span>`,
      member.name,
      member.role,
      stateOf(member),
      timeAgo(member.lastSignInAt, place.now, 'never'),
      member.id === place.viewer.userId ? 'you' : memberActions(place, member),
    ]),
  );
}

function stateOf({ disabledAt, isLocked }: Member): Markup {
  if (isLocked) return badge('off', 'locked by the operator');
  return disabledAt === null ? badge('good', 'active') : badge('off', 'disabled');
}

function memberActions(
  { viewer, path, query, hasPasswords }: ListPlace,
  { id, role, disabledAt }: Member,
): Markup {
  const to = (action: string) => `${path}/${id}/${action}${query}`;
  const remove = html`<a class="button" href="${to('remove')}">Remove</a>`;
  if (disabledAt !== null) {
    return html`<div class="buttons">${actionButton(viewer, to('enable'), 'Enable')}${remove}</div>`;
  }
  const other = role === 'admin' ? 'member' : 'admin';
  return html`<div class="buttons">${roleButton(viewer, to('role'), other)}<a class="button" href="${path}/${id}/sessions">Sessions</a>${hasPasswords && actionButton(viewer, to('password-link'), 'Password link')}${actionButton(viewer, to('disable'), 'Disable', 'danger')}${remove}</div>`;
}

/** By which a member of a tenant gets another role there. */
export function roleButton(viewer: Viewer, action: string, role: 'admin' | 'member'): Markup {
  return html`<form method="post" action="${action}" class="inline">${csrfField(viewer)}<input type="hidden" name="role" value="${role}"><button class="secondary">Make ${role}</button></form>`;
}

/** Links that have not been used yet. */
export function invitationTable(
  { viewer, path, query, now }: ListPlace,
  invitations: readonly Invitation[],
  { hasTenants = false } = {},
): Markup {
  if (invitations.length === 0)
    return emptyState(
      'No pending invitations',
      'Invitation and password links that are not used yet appear here.',
    );
  const labels = [
    'E-mail address',
    ...(hasTenants ? ['Tenant'] : []),
    'Purpose',
    'Created by',
    'Expires',
    '',
  ];
  return dataTable(
    'Pending invitations',
    labels,
    invitations.map((invitation) => [
      html`<span class="break">${invitation.email}</span>`,
      ...(hasTenants ? [invitation.businessName ?? '–'] : []),
      invitation.role === null ? 'a new password' : `role ${invitation.role}`,
      invitation.invitedBy,
      timeAgo(invitation.expiresAt, now),
      actionButton(viewer, `${path}/invitations/${invitation.id}/withdraw${query}`, 'Withdraw'),
    ]),
  );
}
