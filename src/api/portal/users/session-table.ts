import type { UserNotice } from '../../../features/users/user-notices.ts';
import type { SessionSummary } from '../../../features/users/user-sessions.ts';
import type { Viewer } from '../access/viewer.ts';
import { badge } from '../components/badge.ts';
import { actionButton, csrfField } from '../components/form.ts';
import { noticeBox } from '../components/notice.ts';
import { type Column, dataTable, emptyState } from '../components/table.ts';
import { columnTime, exactTime, timeAgo } from '../components/time.ts';
import { html, type Markup, nothing } from '../markup.ts';

const BEGUN: Readonly<Record<SessionSummary['begunBy'], string>> = {
  password: 'password',
  oidc: 'identity provider',
  invitation: 'invitation',
  'set-up link': 'set-up link',
  platform: 'portal link',
};

/** Sessions with a button to end each, by forms under `path`; `ownId`: that of the viewer. */
export function sessionTable(
  { viewer, path, now }: { viewer: Viewer; path: string; now: Date },
  sessions: readonly SessionSummary[],
  ownId: string | null = null,
): Markup {
  if (sessions.length === 0) return emptyState('No sessions', 'This user is signed in nowhere.');
  const columns: Column[] = [
    'Browser',
    'Address',
    { label: 'Signed in', kind: 'time' },
    'By',
    { label: 'Last used', kind: 'narrow' },
    { label: '', kind: 'narrow' },
  ];
  return dataTable(
    'Sessions',
    columns,
    sessions.map((session) => [
      html`<span class="break">${session.userAgent ?? 'unknown'}</span>`,
      session.ip ?? '–',
      columnTime(session.createdAt),
      begunBy(session),
      timeAgo(session.lastSeenAt, now),
      session.id === ownId
        ? badge('good', 'this session')
        : actionButton(viewer, `${path}/${session.id}/end`, 'End'),
    ]),
  );
}

function begunBy({ begunBy: by, hasSecondFactor, passwordLinkBy }: SessionSummary): Markup {
  const factors = `${BEGUN[by]}${hasSecondFactor ? ' and second factor' : ''}`;
  return html`${factors}${passwordLinkBy !== null && html`<div>${badge('waiting', `link made by ${passwordLinkBy}`)}</div>`}`;
}

export function noticeList(notices: readonly UserNotice[]): Markup {
  return html`<ul>${notices.map((notice) => html`<li>${noticeText(notice)}</li>`)}</ul>`;
}

function noticeText({ kind, by, ip, at }: UserNotice): Markup {
  const time = exactTime(new Date(at));
  const from = ip === null ? '' : ` from ${ip}`;
  switch (kind) {
    case 'link_session':
      return html`${time}: signed in${from}, with the password that was set through a link made by ${by}.`;
    case 'password_by_link':
      return html`${time}: a new password was set${from} through a link made by ${by}.`;
    case 'password_confirmed':
      return html`${time}: ${by} confirmed that the password is yours.`;
    case 'second_factor_set':
      return html`${time}: a second factor was set up${from}.`;
    case 'second_factor_reset':
      return html`${time}: ${by} reset your second factor.`;
    case 'identity_linked':
      return html`${time}: ${by ?? 'a person'} at your identity provider was connected${from}.`;
    case 'sessions_ended':
      return html`${time}: ${by} ended sessions of yours.`;
  }
}

/** On each page, until the owner has read it. A session that a link of another person made possible cannot hide it. */
export function ownerNotices(viewer: Viewer): Markup {
  const { notices, passwordLinkBy } = viewer;
  const [newest] = notices;
  if (newest === undefined) return nothing;
  const confirm =
    passwordLinkBy === null &&
    html`<form method="post" action="/portal/account/notices" class="inline">${csrfField(viewer)}<button class="secondary" name="upTo" value="${newest.id}">I have read this</button></form>`;
  const hint =
    passwordLinkBy !== null &&
    html`<p>This session cannot remove the notice: ${passwordLinkBy} may know the password with which it began.</p>`;
  const text = html`This happened to your account. If you do not know why, tell an operator.${noticeList(notices)}${confirm}${hint}`;
  return noticeBox({ kind: 'warning', text });
}
