import type { Membership, User } from '../../../users/user-store.ts';
import { badge } from '../components/badge.ts';
import { actionButton } from '../components/form.ts';
import { dataTable } from '../components/table.ts';
import { timeAgo } from '../components/time.ts';
import { html, type Markup } from '../markup.ts';
import { type ListPlace, roleButton } from './user-tables.ts';

/** All accounts with what an operator can do about them, by forms under `path`. */
export function accountTable(place: ListPlace, users: readonly User[]): Markup {
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
