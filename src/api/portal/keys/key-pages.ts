import type { FastifyReply } from 'fastify';
import type { ApiKeyDetails } from '../../../features/keys/api-key-store.ts';
import { limitKey, listKeys, revokeKey } from '../../../features/keys/api-keys.ts';
import type { KeyRequest } from '../../../features/keys/key-request-store.ts';
import {
  keyRequestOf,
  keyRequestsOf,
  requestKey,
  withdrawKeyRequest,
} from '../../../features/keys/key-requests.ts';
import { type RevealedKey, revealKey } from '../../../features/keys/reveal-key.ts';
import type { RequestError } from '../../../platform/request-input.ts';
import { PAGES } from '../access/page-access.ts';
import { pageNotFound, roleRefused } from '../access/page-error.ts';
import { sendPage } from '../access/send-page.ts';
import type { Viewer } from '../access/viewer.ts';
import { codeBlock } from '../components/copyable.ts';
import { actionButton } from '../components/form.ts';
import { detailList } from '../components/table.ts';
import { exactTime } from '../components/time.ts';
import { linesOf } from '../form-values.ts';
import { action } from '../kits/action.ts';
import { confirmationPage } from '../kits/confirmation-page.ts';
import { formPage } from '../kits/form-page.ts';
import { type List, listPage, showList } from '../kits/list-page.ts';
import { viewPage } from '../kits/view-page.ts';
import type { Visit } from '../kits/visit.ts';
import { type Child, html, type Markup } from '../markup.ts';
import type { PageView } from '../page.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { firstValues, KEY_FIELDS, keyRequestOfForm, NETWORKS } from './key-form.ts';
import { KEY_COLUMNS, keyFacts, keyText, newestFirst, requestColumns, requestFacts } from './key-tables.ts';

const PATH = '/portal/w/:wabaId/keys';
const SEEN = { access: PAGES.member, active: 'keys' };
const CHANGED = { access: PAGES.admin, active: 'keys' };

const DONE = {
  asked:
    'Your request was sent to the operator. The decision appears here; after an approval you can show the key.',
  withdrawn: 'The request is withdrawn.',
  revoked: 'The key is revoked: the next request with it is refused.',
  limited: 'The networks of the key are saved. They count from the next request on.',
};

export function keyPages(app: PortalApp, context: PortalContext): void {
  listPage(app, context, {
    ...SEEN,
    path: PATH,
    title: 'API keys',
    done: DONE,
    columns: KEY_COLUMNS,
    pageSize: 50,
    lead: 'Your systems call the API with these keys. After an operator has approved a request, you can show its key once; later you see only its first and last characters.',
    add: { label: 'Request a key', path: `${PATH}/new`, isPrimary: true },
    empty: {
      title: 'No API keys yet',
      text: 'Your systems need a key to call the API. An operator approves your request; then you can show the key once.',
    },
    find: async (visit) => newestFirst(await keysOf(visit)),
    below: requestPart,
    query: ['cursor'],
  });
  newKeyPage(app, context);
  keyRequestPages(app, context);
  revokeKeyPage(app, context);
  keyNetworkPage(app, context);
}

async function keysOf({ context, waba }: Visit): Promise<ApiKeyDetails[]> {
  return await listKeys(context, waba.wabaId);
}

const REQUESTS: List<KeyRequest> = {
  caption: 'Requests for API keys',
  columns: requestColumns(`${PATH}/requests`),
  pageSize: 25,
  pagerLabel: 'More requests',
  find: async ({ context, waba }, wanted) => await keyRequestsOf(context, waba.wabaId, wanted),
  positionOf: ({ id }) => [id],
};

async function requestPart(visit: Visit): Promise<Child> {
  const { markup, isEmpty } = await showList(visit, REQUESTS);
  return !isEmpty && html`<h2>Requests</h2>${markup}`;
}

function toKeys(visit: Visit): { label: string; href: string }[] {
  return [{ label: 'API keys', href: visit.at(PATH) }];
}

function newKeyPage(app: PortalApp, context: PortalContext): void {
  formPage(app, context, {
    ...CHANGED,
    path: `${PATH}/new`,
    action: `${PATH}/requests`,
    query: ['replace'],
    load: async (visit) => {
      const keys = (await keysOf(visit)).filter(({ state }) => state === 'active');
      return { keys, replaced: keys.find(({ id }) => id === visit.query('replace')) ?? null };
    },
    title: ({ replaced }) => (replaced === null ? 'Request an API key' : 'Replace an API key'),
    lead: 'An operator approves or denies the request within 7 days. Then you can show the key within 7 days.',
    trail: toKeys,
    fields: KEY_FIELDS,
    values: firstValues,
    button: 'Request the key',
    submit: async (visit, given) => {
      const { userId: id, email: name } = visit.viewer;
      await requestKey(visit.tools, visit.waba.wabaId, { id, name }, keyRequestOfForm(given));
      return `${visit.at(PATH)}?done=asked`;
    },
  });
}

function revokeKeyPage(app: PortalApp, context: PortalContext): void {
  confirmationPage(app, context, {
    ...CHANGED,
    path: `${PATH}/:id/revoke`,
    title: () => 'Revoke an API key?',
    trail: toKeys,
    load: async (visit) => oneKey(await keysOf(visit), visit, ({ state }) => state !== 'revoked'),
    lead: 'Every further request with this key is refused. You cannot undo this. Messages that it has scheduled are still sent; cancel them under Scheduled.',
    body: (key, { now }) => detailList(keyFacts(key, now)),
    button: 'Revoke this key',
    act: async (visit) => {
      await revokeKey(visit.tools, visit.waba.wabaId, visit.id);
      return `${visit.at(PATH)}?done=revoked`;
    },
  });
}

function keyNetworkPage(app: PortalApp, context: PortalContext): void {
  formPage(app, context, {
    ...CHANGED,
    path: `${PATH}/:id/networks`,
    title: 'Networks of an API key',
    load: async (visit) => oneKey(await keysOf(visit), visit, ({ state }) => state === 'active'),
    lead: (key) => html`${keyText(key)} ${key.name}`,
    trail: toKeys,
    fields: [NETWORKS],
    values: ({ allowedNetworks }) => ({ allowedNetworks: allowedNetworks?.join('\n') ?? '' }),
    button: 'Save',
    fieldOf: () => NETWORKS.name,
    submit: async (visit, given) => {
      await limitKey(visit.tools, visit.waba.wabaId, visit.id, linesOf(given.text('allowedNetworks')));
      return `${visit.at(PATH)}?done=limited`;
    },
  });
}

function oneKey(
  keys: readonly ApiKeyDetails[],
  { id }: Visit,
  isMeant: (key: ApiKeyDetails) => boolean,
): ApiKeyDetails {
  const key = keys.find((one) => one.id === id && isMeant(one));
  if (key === undefined) throw pageNotFound();
  return key;
}

const REQUEST_PATH = `${PATH}/requests/:id`;

function keyRequestPages(app: PortalApp, context: PortalContext): void {
  viewPage(app, context, { ...SEEN, path: REQUEST_PATH, view: requestView });
  action(app, context, {
    ...CHANGED,
    path: `${REQUEST_PATH}/reveal`,
    refused: refusedView,
    act: async (visit) => {
      if (!mayReveal(visit.viewer, await requestOf(visit))) throw roleRefused();
      // Shown right here: a page that could be fetched again would have to keep the key.
      return keyView(visit, await revealKey(visit.tools, visit.waba.wabaId, visit.id));
    },
  });
  action(app, context, {
    ...CHANGED,
    path: `${REQUEST_PATH}/withdraw`,
    refused: refusedView,
    act: async (visit) => {
      await withdrawKeyRequest(visit.tools, visit.waba.wabaId, visit.id, visit.viewer.userId);
      return `${visit.at(PATH)}?done=withdrawn`;
    },
  });
}

async function requestOf({ context, waba, id }: Visit): Promise<KeyRequest> {
  return await keyRequestOf(context, waba.wabaId, id);
}

async function requestView(visit: Visit): Promise<PageView> {
  const found = await requestOf(visit);
  return {
    title: `Request ${found.id}`,
    trail: toKeys(visit),
    body: html`<div class="card">${detailList(requestFacts(found, visit.now))}</div>
${nextSteps(visit.viewer, visit.at(REQUEST_PATH), found)}`,
  };
}

/** Operators approve, so the keys of tenants are not for them to see: only what they asked for themselves. */
function mayReveal({ role, userId }: Viewer, { requesterId }: KeyRequest): boolean {
  return role === 'admin' || (role === 'operator' && requesterId === userId);
}

function nextSteps(viewer: Viewer, path: string, request: KeyRequest): Markup {
  const { state, requesterId } = request;
  const isOpen = state === 'requested' || state === 'approved';
  const canReveal = state === 'approved' && mayReveal(viewer, request);
  const mayWithdraw = isOpen && viewer.role !== 'member' && requesterId === viewer.userId;
  return html`${canReveal && html`<p>The key is created now and shown only once. Have the place ready where you store it.</p>`}
<div class="buttons">${canReveal && actionButton(viewer, `${path}/reveal`, 'Show the key once', 'primary')}${mayWithdraw && actionButton(viewer, `${path}/withdraw`, 'Withdraw the request')}</div>`;
}

async function refusedView(visit: Visit, error: RequestError): Promise<FastifyReply> {
  if (error.code.startsWith('unknown_')) throw error;
  const notice = { kind: 'error' as const, text: error.message };
  return sendPage(visit.reply, { ...(await requestView(visit)), active: 'keys', notice }, 409);
}

/** The one page that shows a key: it is in no URL and no log, and nothing can show it again. */
function keyView(visit: Visit, key: RevealedKey): PageView {
  const example = `curl -H 'Authorization: Bearer ${key.apiKey}' ${visit.context.publicUrl}/me`;
  const replaced =
    key.replacesKeyId !== null &&
    html`<p>API key ${key.replacesKeyId} ${key.replacedEndsAt === null ? 'stays valid until it is revoked.' : html`stays valid until ${exactTime(key.replacedEndsAt)}.`}</p>`;
  return {
    title: 'Your API key',
    trail: toKeys(visit),
    notice: { kind: 'warning', text: 'Store it now. Heliograph does not keep it and cannot show it again.' },
    body: html`${codeBlock(key.apiKey, 'API key')}
<p>${key.name}: ${key.scopes.join(', ')}; valid ${key.expiresAt === null ? 'until revoked' : html`until ${exactTime(key.expiresAt)}`}.</p>
${replaced}
<h2>Try it</h2>
${codeBlock(example, 'Example')}
<p><a class="button" href="${visit.at(PATH)}">I have stored it</a></p>`,
  };
}
