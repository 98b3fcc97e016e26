import type { LinkPage } from '../../features/users/portal-link-store.ts';
import type { SessionStep } from '../../features/users/sign-in-policy.ts';
import { mayUse } from './access/link-access.ts';
import type { Viewer } from './access/viewer.ts';
import { csrfField } from './components/form.ts';
import { html, type Markup, nothing } from './markup.ts';

/** `count`: what waits there for the reader. */
export type NavigationEntry = { key: string; label: string; href: string; count?: number };

export type WabaInView = { wabaId: string; businessName: string };

const TENANT_PAGES = [
  ['overview', 'Overview', ''],
  ['endpoints', 'Webhook Settings', '/endpoints'],
  ['deliveries', 'Deliveries', '/deliveries'],
  ['replays', 'Replays', '/replays'],
  ['conversations', 'Conversations', '/conversations'],
  ['broadcasts', 'Broadcasts', '/broadcasts'],
  ['templates', 'Message templates', '/templates'],
  ['usage', 'Usage', '/usage'],
  ['erasures', 'Erasures', '/erasures'],
  ['event-types', 'Event types', '/event-types'],
  ['keys', 'API keys', '/keys'],
  ['data', 'Data and storage', '/data'],
  ['audit', 'Audit log', '/audit'],
] as const;

const OPERATOR_PAGES = [
  ['operator/health', 'System health', '/health'],
  ['operator/tenants', 'Tenants', '/tenants'],
  ['operator/usage', 'Usage', '/usage'],
  ['operator/approvals', 'Approvals', '/approvals'],
  ['operator/deliveries', 'All deliveries', '/deliveries'],
  ['operator/users', 'Users', '/users'],
  ['operator/platform-keys', 'Platform keys', '/platform-keys'],
  ['operator/settings', 'Settings', '/settings'],
  ['operator/erasures', 'Erasures', '/erasures'],
  ['operator/audit', 'Audit log', '/audit'],
] as const;

const APPROVALS = 'operator/approvals';
const WAYS_OUT: readonly string[] = ['operator/health', 'operator/tenants', APPROVALS];

export const SANDBOX_ENTRY = { key: 'sandbox', label: 'Sandbox console', href: '/portal/sandbox' };

export function tenantNavigation(viewer: Viewer, { wabaId }: WabaInView): NavigationEntry[] {
  const base = `/portal/w/${encodeURIComponent(wabaId)}`;
  const entries = TENANT_PAGES.map(([key, label, path]) => ({ key, label, href: `${base}${path}` }));
  const users = { key: 'users', label: 'Users', href: `${base}/users` };
  const all = viewer.role === 'member' ? entries : [...entries, users];
  return all.filter(({ href }) => mayUse(viewer.link, 'GET', href));
}

/** Where a portal link leads in a WABA. */
export function pageOfWaba(wabaId: string, page: LinkPage): string {
  const base = `/portal/w/${encodeURIComponent(wabaId)}`;
  return page === 'overview' ? base : `${base}/${page}`;
}

/** The way back of lists that stand behind the conversations of a WABA. */
export function conversationsTrail({ waba }: { waba: Pick<WabaInView, 'wabaId'> }) {
  return [{ label: 'Conversations', href: `/portal/w/${encodeURIComponent(waba.wabaId)}/conversations` }];
}

/** So many WABAs are listed beside a page; the rest is behind the last entry. */
const MAX_WABAS = 20;

export function wabaNavigation(wabaIds: readonly string[]): NavigationEntry[] {
  const entries = wabaIds.slice(0, MAX_WABAS).map((wabaId) => {
    return { key: wabaId, label: wabaId, href: `/portal/w/${encodeURIComponent(wabaId)}` };
  });
  return wabaIds.length > MAX_WABAS
    ? [...entries, { key: 'wabas', label: 'All WABAs', href: '/portal' }]
    : entries;
}

export function operatorNavigation(pendingApprovals: number): NavigationEntry[] {
  return OPERATOR_PAGES.map(([key, label, path]) => {
    const entry = { key, label, href: `/portal/operator${path}` };
    return key === APPROVALS ? { ...entry, count: pendingApprovals } : entry;
  });
}

/** Inside a tenant: the ways out of it. Other pages of operators have the names of pages of the tenant. */
export function operatorWay(entries: readonly NavigationEntry[]): NavigationEntry[] {
  return entries.filter(({ key }) => WAYS_OUT.includes(key));
}

type Place = Viewer['places'][number];

export function placeName({ businessName }: Pick<Place, 'businessName'>): string {
  return businessName ?? 'All tenants';
}

/** Nothing for a user of one tenant. `isNamed`: the page says already which tenant it is of. */
export function tenantSwitcher(viewer: Viewer, isNamed: boolean): Markup {
  const { places, tenantId } = viewer;
  const here = places.find((place) => place.tenantId === tenantId);
  if (places.length < 2 || here === undefined) return nothing;
  const others = places.filter((place) => place !== here);
  return html`<details class="switcher"><summary>${isNamed ? 'Switch tenant' : placeName(here)}</summary>
<form method="post" action="/portal/tenant">${csrfField(viewer)}<p class="hint">From ${placeName(here)} to</p>${others.map(placeButton)}</form></details>`;
}

function placeButton(place: Place): Markup {
  return html`<button class="plain" name="tenant" value="${place.tenantId ?? ''}"><strong>${placeName(place)}</strong> <span class="role">${place.role}</span></button>`;
}

export const SECOND_FACTOR = '/portal/account/second-factor';

const ANY_ORIGIN = 'https://portal.invalid';

/** Where to go after signing in: a path of the portal, whatever `text` tries. */
export function localPath(text: string | undefined): string {
  const url = text?.startsWith('/') ? URL.parse(text, ANY_ORIGIN) : null;
  const isOurs = url?.origin === ANY_ORIGIN && /^\/portal(?:\/|$)/.test(url.pathname);
  return isOurs && url !== null ? `${url.pathname}${url.search}` : '/portal';
}

export function signInPath(wanted: string): string {
  const next = localPath(wanted);
  return next === '/portal' ? '/portal/sign-in' : `/portal/sign-in?next=${encodeURIComponent(next)}`;
}

/** The page of the step that a sign-in waits for, which leads on to the wanted page. */
export function secondStepPath(step: SessionStep, wanted: string): string {
  const page = step === 'code' ? '/portal/sign-in/code' : SECOND_FACTOR;
  const next = localPath(wanted);
  return hrefWith(page, { next: next === '/portal' ? '' : next });
}

/** A path with those of the parameters that have a value. */
export function hrefWith(path: string, parameters: Readonly<Record<string, string | undefined>>): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value) given.set(name, value);
  return given.size === 0 ? path : `${path}?${given}`;
}
