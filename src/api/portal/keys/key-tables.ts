import type { FastifyRequest } from 'fastify';
import type { ApiKeyDetails } from '../../../keys/api-key-store.ts';
import type { KeyRequest, KeyRequestState } from '../../../keys/key-request-store.ts';
import { wabaOf } from '../access/viewer.ts';
import { badge, type Tone } from '../components/badge.ts';
import { dataTable, emptyState } from '../components/table.ts';
import { timeAgo } from '../components/time.ts';
import { type Child, html, type Markup } from '../markup.ts';

type TableView = { path: string; canChange: boolean; now: Date };

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

/** How a request stands, in a few words. */
function requestBadge(state: KeyRequestState): Markup {
  return badge(REQUEST_TONES[state], REQUEST_WORDS[state]);
}

/** Keys: what may be shown of them after the one time. */
export function keyTable(keys: readonly ApiKeyDetails[], { path, canChange, now }: TableView): Markup {
  if (keys.length === 0) {
    return emptyState(
      'No API keys yet',
      'Your systems need a key to call the API. An operator approves your request; then you can show the key once.',
      canChange && html`<a class="button primary" href="${path}/new">Request a key</a>`,
    );
  }
  const labels = ['Key', 'Name', 'Scopes', 'Networks', 'Status', 'Created', 'Last used', 'Expires', ''];
  return dataTable(
    'API keys',
    labels,
    keys.map((key) => [
      html`<code>${key.prefix}…${key.lastFour}</code>`,
      html`<span class="break">${key.name}</span>`,
      key.scopes.join(', '),
      key.allowedNetworks?.join(', ') ?? html`<span class="faint">anywhere</span>`,
      badge(KEY_TONES[key.state], key.state),
      timeAgo(key.createdAt, now),
      timeAgo(key.lastUsedAt, now, 'never'),
      timeAgo(key.expiresAt, now, 'never'),
      canChange && key.state === 'active' && keyActions(path, key.id),
    ]),
  );
}

function keyActions(path: string, keyId: string): Markup {
  return html`<div class="buttons"><a class="button" href="${path}/new?replace=${keyId}">Replace</a><a class="button" href="${path}/${keyId}/networks">Networks</a><a class="button danger" href="${path}/${keyId}/revoke">Revoke</a></div>`;
}

/** Requests with their state and who decided. */
export function requestTable(
  caption: string,
  requests: readonly KeyRequest[],
  { now, hrefOf, hasTenants = false }: { now: Date; hrefOf: (id: string) => string; hasTenants?: boolean },
): Markup {
  const labels = [
    'Request',
    ...(hasTenants ? ['Tenant', 'WABA'] : []),
    'Purpose',
    'Requested by',
    'Requested',
    'Status',
    'Decided by',
  ];
  return dataTable(
    caption,
    labels,
    requests.map((request) => [
      html`<a href="${hrefOf(request.id)}">${request.id}</a>`,
      ...(hasTenants ? [request.businessName, html`<code>${request.wabaId}</code>`] : []),
      html`<span class="break">${request.purpose}</span>`,
      request.requester,
      timeAgo(request.createdAt, now),
      requestBadge(request.state),
      request.decidedBy ?? html`<span class="faint">–</span>`,
    ]),
  );
}

/** All there is to say of a request. */
export function requestFacts(request: KeyRequest, now: Date): readonly (readonly [string, Child])[] {
  const { note, decidedBy, decidedAt, revealedBy, finishedAt } = request;
  const decided = html`${decidedBy}, ${timeAgo(decidedAt, now)}${note !== null && html`: ${note}`}`;
  return [
    ['Status', requestBadge(request.state)],
    ['Purpose', request.purpose],
    ['Requested by', html`${request.requester}, ${timeAgo(request.createdAt, now)}`],
    ['Scopes', request.scopes.join(', ')],
    ['Networks', request.allowedNetworks?.join(', ') ?? 'anywhere'],
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

export const KEYS_PATH = '/portal/w/:wabaId/keys';

/** Where the keys of this request's WABA are. */
export function keysPath(request: FastifyRequest): string {
  return `/portal/w/${wabaOf(request).wabaId}/keys`;
}

/** What all pages about keys have in common. */
export function keyView(request: FastifyRequest) {
  return { waba: wabaOf(request), active: 'keys' };
}
