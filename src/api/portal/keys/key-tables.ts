import type { ApiKeyDetails } from '../../../features/keys/api-key-store.ts';
import type { KeyRequest, KeyRequestState } from '../../../features/keys/key-request-store.ts';
import { type SendLimits, sendLimitTexts } from '../../../features/keys/send-limits.ts';
import { badge, type Tone } from '../components/badge.ts';
import { timeAgo } from '../components/time.ts';
import type { ListColumn } from '../kits/list-page.ts';
import type { Visit } from '../kits/visit.ts';
import { type Child, html, type Markup } from '../markup.ts';

const KEY_TONES = { active: 'good', expired: 'off', revoked: 'off' } as const;

const REQUEST_TONES: Readonly<Record<KeyRequestState, Tone>> = {
  requested: 'waiting',
  approved: 'good',
  denied: 'bad',
  expired: 'off',
  revealed: 'neutral',
  withdrawn: 'off',
};

const REQUEST_WORDS: Readonly<Record<KeyRequestState, string>> = {
  requested: 'pending approval',
  approved: 'approved, not shown yet',
  denied: 'denied',
  expired: 'expired',
  revealed: 'key was shown',
  withdrawn: 'withdrawn',
};

function requestBadge(state: KeyRequestState): Markup {
  return badge(REQUEST_TONES[state], REQUEST_WORDS[state]);
}

type Shared =
  | 'name'
  | 'prefix'
  | 'lastFour'
  | 'state'
  | 'allowedNetworks'
  | 'createdAt'
  | 'expiresAt'
  | 'lastUsedAt';

/** An API key, or a key of the platform API. */
type AnyKey = Pick<ApiKeyDetails, Shared> & { scopes: readonly string[] };

export const KEY_STATE_COLUMNS: ListColumn<AnyKey>[] = [
  { label: 'Status', kind: 'narrow', cell: ({ state }) => badge(KEY_TONES[state], state) },
  { label: 'Created', kind: 'narrow', cell: ({ createdAt }, { now }) => timeAgo(createdAt, now) },
  {
    label: 'Last used',
    kind: 'narrow',
    cell: ({ lastUsedAt }, { now }) => timeAgo(lastUsedAt, now, 'never'),
  },
  { label: 'Expires', kind: 'narrow', cell: ({ expiresAt }, { now }) => timeAgo(expiresAt, now, 'never') },
];

export const KEY_COLUMNS: ListColumn<ApiKeyDetails>[] = [
  { label: 'Key', cell: (key) => html`<span class="break">${key.name}</span><br>${keyText(key)}` },
  { label: 'Scopes and limits', cell: keyLimits },
  ...KEY_STATE_COLUMNS,
  { label: '', kind: 'narrow', cell: keyActions },
];

export function keyText({ prefix, lastFour }: AnyKey): Markup {
  return html`<code>${prefix}…${lastFour}</code>`;
}

/** Those that are active first. */
export function newestFirst<Key extends AnyKey>(keys: readonly Key[]): Key[] {
  const isActive = ({ state }: Key) => Number(state === 'active');
  return keys.toReversed().sort((one, other) => isActive(other) - isActive(one));
}

/** What is to be known before a key is revoked. */
export function keyFacts(key: AnyKey, now: Date): [string, Child][] {
  return [
    ['Key', keyText(key)],
    ['Name', key.name],
    ['Scopes', key.scopes.join(', ')],
    ['Last used', timeAgo(key.lastUsedAt, now, 'never')],
  ];
}

export function networksText({ allowedNetworks }: AnyKey): string {
  return allowedNetworks === null ? 'from anywhere' : `from ${allowedNetworks.join(', ')}`;
}

function keyLimits(key: ApiKeyDetails): Markup {
  return html`${key.scopes.join(', ')}<br><span class="faint break">${networksText(key)}</span>${sendLimits(key)}`;
}

/** Nothing for a key without any. */
export function sendLimits(limits: SendLimits): Child {
  const [messages, recipients] = sendLimitTexts(limits);
  return (
    (limits.maxMessagesPerDay !== null || limits.recipients !== 'any') &&
    html`<br><span class="faint">messages: ${messages}; recipients: ${recipients}</span>`
  );
}

function keyActions({ id, state }: ApiKeyDetails, { mayChange, path }: Visit): Child {
  if (!mayChange || state !== 'active') return false;
  return html`<div class="buttons"><a class="button" href="${path}/new?replace=${id}">Replace</a><a class="button" href="${path}/${id}/networks">Networks</a><a class="button danger" href="${path}/${id}/revoke">Revoke</a></div>`;
}

function person(name: string | null): Markup {
  if (name === null) return html`<span class="faint">–</span>`;
  return html`<span class="break address">${name}</span>`;
}

/** Requests with their state and who decided; `path`: where the page of one is. */
export function requestColumns(path: string): ListColumn<KeyRequest>[] {
  return [
    { label: 'Request', cell: ({ id }, visit) => html`<a href="${visit.at(path)}/${id}">${id}</a>` },
    { label: 'Purpose', cell: ({ purpose }) => html`<span class="break">${purpose}</span>` },
    { label: 'Requested by', cell: ({ requester }) => person(requester) },
    { label: 'Requested', kind: 'narrow', cell: ({ createdAt }, { now }) => timeAgo(createdAt, now) },
    { label: 'Status', kind: 'narrow', cell: ({ state }) => requestBadge(state) },
    { label: 'Decided by', cell: ({ decidedBy }) => person(decidedBy) },
  ];
}

export function requestFacts(request: KeyRequest, now: Date): readonly (readonly [string, Child])[] {
  const { note, decidedBy, decidedAt, revealedBy, finishedAt } = request;
  const [messages, recipients] = sendLimitTexts(request);
  const decided = html`${decidedBy}, ${timeAgo(decidedAt, now)}${note !== null && html`: ${note}`}`;
  return [
    ['Status', requestBadge(request.state)],
    ['Purpose', request.purpose],
    ['Requested by', html`${request.requester}, ${timeAgo(request.createdAt, now)}`],
    ['Scopes', request.scopes.join(', ')],
    ['Networks', request.allowedNetworks?.join(', ') ?? 'anywhere'],
    ['Messages', messages],
    ['Recipients', recipients],
    [
      'Lifetime',
      request.validDays === null ? 'until revoked' : `${request.validDays} days, from the moment it is shown`,
    ],
    ['Replaces', replacedText(request)],
    ...(decidedBy === null ? [] : [['Decided by', decided] as const]),
    ...(revealedBy === null ? [] : [['Shown to', html`${revealedBy}, ${timeAgo(finishedAt, now)}`] as const]),
    ...(request.state === 'requested'
      ? [['Expires', timeAgo(request.decideUntil, now)] as const]
      : request.state === 'approved'
        ? [['Can be shown', html`until ${timeAgo(request.revealUntil, now)}`] as const]
        : []),
  ];
}

function replacedText({ replacesKeyId, overlapHours }: KeyRequest): string {
  if (replacesKeyId === null) return 'no key';
  if (overlapHours === null) return `API key ${replacesKeyId}, which stays valid until it is revoked`;
  return `API key ${replacesKeyId}, which ends ${overlapHours} hours after the new key is shown`;
}
