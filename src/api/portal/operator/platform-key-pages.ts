import { API_KEY_SCOPES } from '../../../features/keys/api-key.ts';
import {
  listPlatformKeys,
  PLATFORM_SCOPES,
  type PlatformKey,
  type PlatformScope,
} from '../../../features/keys/platform-key-store.ts';
import { createPlatformKey, revokePlatformKey } from '../../../features/keys/platform-keys.ts';
import { PAGES } from '../access/page-access.ts';
import { pageNotFound } from '../access/page-error.ts';
import { codeBlock } from '../components/copyable.ts';
import { detailList } from '../components/table.ts';
import { exactTime } from '../components/time.ts';
import { linesOf } from '../form-values.ts';
import { NETWORKS, SCOPE_LABELS, VALID } from '../keys/key-form.ts';
import { KEY_STATE_COLUMNS, keyFacts, keyText, networksText, newestFirst } from '../keys/key-tables.ts';
import { confirmationPage } from '../kits/confirmation-page.ts';
import type { FormField } from '../kits/form-fields.ts';
import { formPage, type Given } from '../kits/form-page.ts';
import { type ListColumn, listPage } from '../kits/list-page.ts';
import type { Visit } from '../kits/visit.ts';
import { html, type Markup } from '../markup.ts';
import type { PageView } from '../page.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';

const PATH = '/portal/operator/platform-keys';
const PLACE = { access: PAGES.operator, active: 'operator/platform-keys' };
const TRAIL = [{ label: 'Platform keys', href: PATH }];

const COLUMNS: ListColumn<PlatformKey>[] = [
  { label: 'Key', cell: (key) => html`<span class="break">${key.name}</span><br>${keyText(key)}` },
  { label: 'Scopes and networks', cell: limitsOf },
  ...KEY_STATE_COLUMNS,
  {
    label: '',
    kind: 'narrow',
    cell: ({ id, state }) =>
      state === 'active' && html`<a class="button danger" href="${PATH}/${id}/revoke">Revoke</a>`,
  },
];

function limitsOf(key: PlatformKey): Markup {
  const { scopes, grantableScopes } = key;
  const gives =
    grantableScopes.length > 0 && html`<br><span class="faint">gives ${grantableScopes.join(', ')}</span>`;
  return html`${scopes.join(', ')}${gives}<br><span class="faint break">${networksText(key)}</span>`;
}

/** Keys of the operator's own program: the list, a new one that is shown once, and the end of one. */
export function platformKeyPages(app: PortalApp, context: PortalContext): void {
  listPage(app, context, {
    ...PLACE,
    path: PATH,
    title: 'Platform keys',
    lead: html`Your own program creates tenants, WABAs, API keys and endpoints with such a key, by <code>/api/platform</code>. It reads no message and no file.`,
    done: { revoked: 'The key is revoked: the next request with it is refused.' },
    columns: COLUMNS,
    pageSize: 50,
    add: { label: 'New platform key', path: `${PATH}/new`, isPrimary: true },
    find: async ({ context: { database } }) => newestFirst(await listPlatformKeys(database)),
    empty: {
      title: 'No platform keys yet',
      text: 'A program of yours needs one to create tenants and their keys without a shell.',
    },
  });
  newKeyPage(app, context);
  revokePage(app, context);
}

const PLATFORM_SCOPE_LABELS: Readonly<Record<PlatformScope, string>> = {
  read: 'read: tenants, WABAs, keys, endpoints and events of the feed',
  tenants: 'tenants: create, rename and suspend tenants',
  wabas: 'wabas: WABAs and their access tokens',
  keys: 'keys: API keys of tenants, with the scopes below',
  endpoints: 'endpoints: where webhooks of tenants go',
  users: 'users: invite users of tenants',
  portal_sessions: 'portal_sessions: links into the portal',
  setup_links: 'setup_links: links for connecting a number',
  usage: 'usage: message counts of all tenants',
  remove: 'remove: remove tenants and WABAs, permanently',
};

type Name = 'name' | 'scopes' | 'grantableScopes' | 'networks' | 'fromAnywhere' | 'validDays';

const FIELDS: FormField<Name, null>[] = [
  { name: 'name', label: 'Purpose', required: true, maxLength: 200, placeholder: 'CRM, production' },
  {
    name: 'scopes',
    label: 'Scopes',
    widget: 'ticks',
    options: PLATFORM_SCOPES.map((value) => ({ value, label: PLATFORM_SCOPE_LABELS[value] })),
  },
  {
    name: 'grantableScopes',
    label: 'Scopes that it may give to API keys',
    widget: 'ticks',
    options: API_KEY_SCOPES.map((value) => ({ value, label: SCOPE_LABELS[value] })),
    hint: 'Only with the scope keys. None ticked: send, manage_webhooks.',
  },
  { ...NETWORKS, name: 'networks', mayBeMissing: true },
  {
    name: 'fromAnywhere',
    label: 'Without networks',
    widget: 'ticks',
    options: [{ value: 'yes', label: 'It may be used from anywhere, although its scopes need networks' }],
  },
  { name: 'validDays', label: 'Lifetime', widget: 'list', options: VALID },
];

function newKeyPage(app: PortalApp, context: PortalContext): void {
  formPage(app, context, {
    ...PLACE,
    path: `${PATH}/new`,
    title: 'New platform key',
    lead: 'The key is shown once, when it is made.',
    trail: () => TRAIL,
    fields: FIELDS,
    values: () => ({ scopes: ['read'], validDays: '365' }),
    button: 'Create the key',
    submit: async (visit, given) => {
      const { mode } = visit.context.config;
      return keyView(await createPlatformKey(visit.tools, wantedKey(given, visit.now), mode));
    },
  });
}

const DAY_MS = 86_400_000;

function wantedKey({ text, list }: Given<Name>, now: Date) {
  const days = text('validDays');
  const grantableScopes = list('grantableScopes');
  return {
    name: text('name'),
    scopes: list('scopes'),
    ...(grantableScopes.length > 0 && { grantableScopes }),
    networks: linesOf(text('networks')),
    fromAnywhere: list('fromAnywhere').length > 0,
    expiresAt: days === '' ? null : new Date(now.getTime() + Number(days) * DAY_MS),
  };
}

/** The one page that shows the key: it is in no URL and no log, and nothing can show it again. */
function keyView(key: PlatformKey & { platformKey: string }): PageView {
  const { platformKey, name, scopes, expiresAt } = key;
  return {
    title: 'Your platform key',
    trail: TRAIL,
    notice: { kind: 'warning', text: 'Store it now. Heliograph does not keep it and cannot show it again.' },
    body: html`${codeBlock(platformKey, 'Platform key')}
<p>${name}: ${scopes.join(', ')}; valid ${expiresAt === null ? 'until revoked' : html`until ${exactTime(expiresAt)}`}.</p>
<p><a class="button" href="${PATH}">I have stored it</a></p>`,
  };
}

function revokePage(app: PortalApp, context: PortalContext): void {
  confirmationPage(app, context, {
    ...PLACE,
    path: `${PATH}/:id/revoke`,
    title: () => 'Revoke a platform key?',
    trail: () => TRAIL,
    load: activeKey,
    lead: 'Every further request of your program with this key is refused. You cannot undo this.',
    body: (key, { now }) => detailList(keyFacts(key, now)),
    button: 'Revoke this key',
    act: async (visit) => {
      await revokePlatformKey(visit.tools, visit.id);
      return `${PATH}?done=revoked`;
    },
  });
}

async function activeKey({ context: { database }, id }: Visit): Promise<PlatformKey> {
  const key = (await listPlatformKeys(database)).find((one) => one.id === id && one.state === 'active');
  if (key === undefined) throw pageNotFound();
  return key;
}
