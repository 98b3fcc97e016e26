import type { GroupMember } from '../../../features/customers/groups.ts';
import type { ConversationDetail } from '../../../features/messages/conversations/conversations.ts';
import type { Participant } from '../../../features/messages/conversations/participants.ts';
import { badge, type Tone } from '../components/badge.ts';
import { copyable } from '../components/copyable.ts';
import { dataTable } from '../components/table.ts';
import { columnTime, exactTime } from '../components/time.ts';
import { html, type Markup, nothing } from '../markup.ts';

const STATES: Readonly<Record<string, readonly [Tone, string]>> = {
  active: ['good', 'Active'],
  suspended: ['bad', 'Suspended'],
  deleted: ['off', 'Deleted'],
};

export function groupRows(
  { groupSubject, groupDescription, groupState }: ConversationDetail,
  groupId: string,
): (readonly [string, Markup | string])[] {
  const [tone, label] = STATES[groupState ?? ''] ?? ['off', 'Not reported'];
  return [
    ['Group', copyable(groupId)],
    ...(groupSubject === null ? [] : [['Subject', groupSubject] as const]),
    ...(groupDescription === null ? [] : [['Description', groupDescription] as const]),
    ['State of the group', badge(tone, label)],
  ];
}

const COLUMNS = [
  'Member',
  { label: 'Phone or id', kind: 'narrow' },
  { label: 'State', kind: 'narrow' },
  { label: 'Since', kind: 'time' },
] as const;

export function groupMembers(members: readonly GroupMember[]): Markup {
  if (members.length === 0) return html`<p class="faint">Upstream has reported no members of this group.</p>`;
  return dataTable(
    'Members of the group',
    COLUMNS,
    members.map(({ waId, userId, name, username, state, at }) => [
      name ?? username ?? 'No name',
      html`<code>${waId ?? userId ?? '–'}</code>`,
      state === 'member' ? badge('good', 'member') : badge('waiting', 'asks to join'),
      columnTime(at),
    ]),
  );
}

const TONES: Readonly<Record<string, Tone>> = {
  failed: 'bad',
  read: 'good',
  played: 'good',
  delivered: 'good',
  sent: 'neutral',
  cancelled: 'off',
};

export function statusBadge(state: string): Markup {
  return badge(TONES[state] ?? 'waiting', state);
}

/** With whom of a group a message is; nothing where upstream has not said. */
export function participantList(participants: readonly Participant[] = []): Markup {
  if (participants.length === 0) return nothing;
  return html`<details><summary>${participants.length} ${participants.length === 1 ? 'member' : 'members'}</summary><ul class="participants">${participants.map(
    ({ participant, status, at }) =>
      html`<li><code>${participant}</code> ${statusBadge(status)} ${at !== null && exactTime(at)}</li>`,
  )}</ul></details>`;
}
