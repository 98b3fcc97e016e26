import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import type { ApiKeyDetails } from '../../../keys/api-key-store.ts';
import { limitKey, listKeys, revokeKey } from '../../../keys/api-keys.ts';
import type { KeyRequest } from '../../../keys/key-request-store.ts';
import { keyRequestOf, keyRequestsOf, requestKey, withdrawKeyRequest } from '../../../keys/key-requests.ts';
import { type RevealedKey, revealKey } from '../../../keys/reveal-key.ts';
import { RequestError } from '../../../platform/request-input.ts';
import { accountObjectId } from '../../external/schema-kit.ts';
import { PAGES } from '../access/page-access.ts';
import { pageNotFound, roleRefused } from '../access/page-error.ts';
import { sendPage } from '../access/send-page.ts';
import { actorOf, type Viewer, viewerOf, wabaOf } from '../access/viewer.ts';
import { codeBlock } from '../components/copyable.ts';
import { actionButton, postForm } from '../components/form.ts';
import type { Notice } from '../components/notice.ts';
import { numberedPage, numberedPager, pager } from '../components/pager.ts';
import { detailList } from '../components/table.ts';
import { exactTime, timeAgo } from '../components/time.ts';
import { EMPTY_FORM, linesOf } from '../form-values.ts';
import { html, type Markup } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { emptyKeyForm, KeyForm, keyForm, keyRequestOfForm, networkField } from './key-form.ts';
import { KEYS_PATH, keysPath, keyTable, keyView, requestFacts, requestTable } from './key-tables.ts';

const KEYS_PER_PAGE = 50;
const REQUESTS_PER_PAGE = 25;

/** Fields of the form, beside which an error stands; without a key there is none to replace. */
const FIELDS_WITHOUT_KEYS = ['purpose', 'scopes', 'allowedNetworks', 'validDays'];
const FIELDS = [...FIELDS_WITHOUT_KEYS, 'replacesKeyId', 'overlapHours'];

const DONE = {
  asked:
    'Your request was sent to the operator. The decision appears here; after an approval you can show the key.',
  withdrawn: 'The request is withdrawn.',
  revoked: 'The key is revoked: the next request with it is refused.',
  limited: 'The networks of the key are saved. They count from the next request on.',
};

/** /portal/w/:wabaId/keys: the API keys of a WABA; asking for one, revealing it once, revoking it. */
export function keyPages(app: PortalApp, context: PortalContext): void {
  const { database, now } = context;
  const text = Type.Optional(Type.String());
  const querystring = Type.Object({ done: text, page: text, cursor: text });
  app.get(KEYS_PATH, { config: PAGES.member, schema: { querystring } }, async (request, reply) => {
    const { wabaId } = wabaOf(request);
    const path = keysPath(request);
    const [keys, requests] = await Promise.all([
      listKeys({ database }, wabaId),
      requestPart(context, wabaId, path, request.query.cursor),
    ]);
    const canChange = viewerOf(request).role !== 'member';
    const shown = numberedPage(newestFirst(keys), request.query.page, KEYS_PER_PAGE);
    const body = html`${keyTable(shown.rows, { path, canChange, now: new Date(now()) })}${numberedPager(shown, (number) => `${path}?page=${number}`)}
${requests}`;
    return sendPage(reply, {
      ...keyView(request),
      title: 'API keys',
      lead: 'Your systems call the API with these keys. After an operator has approved a request, you can show its key once; later you see only its first and last characters.',
      actions:
        canChange && keys.length > 0 && html`<a class="button primary" href="${path}/new">Request a key</a>`,
      done: DONE,
      body,
    });
  });
  newKeyPages(app, context);
  keyRequestPages(app, context);
  revokeKeyPages(app, context);
  keyNetworkPages(app, context);
}

/** The newest requests, or those that a cursor leads to. */
async function requestPart(
  { database, cursors, now }: PortalContext,
  wabaId: string,
  path: string,
  cursor: string | undefined,
): Promise<Markup | false> {
  const [beforeId = null] = (cursor !== undefined && cursors.decode([path], cursor)) || [];
  const found = await keyRequestsOf({ database }, wabaId, { beforeId, limit: REQUESTS_PER_PAGE + 1 });
  const rows = found.slice(0, REQUESTS_PER_PAGE);
  if (rows.length === 0) return false;
  const last = found.length > REQUESTS_PER_PAGE ? rows.at(-1) : undefined;
  const nextHref = last === undefined ? null : `${path}?cursor=${cursors.encode([path], [last.id])}`;
  const firstHref = beforeId === null ? null : path;
  const view = { now: new Date(now()), hrefOf: (id: string) => `${path}/requests/${id}` };
  return html`<h2>Requests</h2>${requestTable('Requests for API keys', rows, view)}${pager({ firstHref, nextHref, label: 'More requests' })}`;
}

function newestFirst(keys: readonly ApiKeyDetails[]): ApiKeyDetails[] {
  const active = keys.filter(({ state }) => state === 'active');
  return [...active.reverse(), ...keys.filter(({ state }) => state !== 'active').reverse()];
}

function newKeyPages(app: PortalApp, { database }: PortalContext): void {
  const show = async (
    request: FastifyRequest,
    reply: FastifyReply,
    { form, error }: { form: KeyForm | null; error: RequestError | null },
    replace = '',
  ) => {
    const keys = await listKeys({ database }, wabaOf(request).wabaId);
    const replaced = keys.find(({ id, state }) => id === replace && state === 'active') ?? null;
    const path = keysPath(request);
    const filled = form ?? emptyKeyForm(replaced);
    const fields = keys.some(({ state }) => state === 'active') ? FIELDS : FIELDS_WITHOUT_KEYS;
    const unplaced = error !== null && !fields.includes(error.param ?? '') ? error.message : null;
    const view = {
      ...keyView(request),
      title: replaced === null ? 'Request an API key' : 'Replace an API key',
      lead: 'An operator approves or denies the request within 7 days. Then you can show the key within 7 days.',
      trail: [{ label: 'API keys', href: path }],
      notice: unplaced === null ? null : { kind: 'error' as const, text: unplaced },
      body: keyForm(viewerOf(request), `${path}/requests`, { form: filled, keys, error }),
    };
    return sendPage(reply, view, error === null ? 200 : 422);
  };

  const querystring = Type.Object({ replace: Type.Optional(Type.String()) });
  app.get(`${KEYS_PATH}/new`, { config: PAGES.admin, schema: { querystring } }, async (request, reply) =>
    show(request, reply, { form: null, error: null }, request.query.replace),
  );
  app.post(
    `${KEYS_PATH}/requests`,
    { config: PAGES.admin, schema: { body: KeyForm } },
    async (request, reply) => {
      const { userId, email } = viewerOf(request);
      const tools = { database, actor: actorOf(request) };
      const requester = { id: userId, name: email };
      try {
        await requestKey(tools, wabaOf(request).wabaId, requester, keyRequestOfForm(request.body));
      } catch (error) {
        if (!(error instanceof RequestError)) throw error;
        return await show(request, reply, { form: request.body, error });
      }
      return reply.redirect(`${keysPath(request)}?done=asked`, 303);
    },
  );
}

/** Revoking a key, on a page that asks first. */
function revokeKeyPages(app: PortalApp, { database, now }: PortalContext): void {
  const params = Type.Object({ wabaId: Type.String(), id: Type.String() });
  app.get(`${KEYS_PATH}/:id/revoke`, { config: PAGES.admin, schema: { params } }, async (request, reply) => {
    const { id } = request.params;
    const keys = await listKeys({ database }, wabaOf(request).wabaId);
    const key = keys.find((one) => one.id === id && one.state !== 'revoked');
    if (key === undefined) throw pageNotFound();
    const path = keysPath(request);
    const facts = detailList([
      ['Key', html`<code>${key.prefix}…${key.lastFour}</code>`],
      ['Name', key.name],
      ['Scopes', key.scopes.join(', ')],
      ['Last used', timeAgo(key.lastUsedAt, new Date(now()), 'never')],
    ]);
    const buttons = html`<div class="buttons"><button class="danger">Revoke this key</button><a class="button" href="${path}">Cancel</a></div>`;
    return sendPage(reply, {
      ...keyView(request),
      title: 'Revoke an API key?',
      trail: [{ label: 'API keys', href: path }],
      lead: 'Every further request with this key is refused. You cannot undo this.',
      body: html`<div class="card">${facts}</div>${postForm(viewerOf(request), `${path}/${key.id}/revoke`, buttons)}`,
    });
  });

  const schema = { params, body: EMPTY_FORM };
  app.post(`${KEYS_PATH}/:id/revoke`, { config: PAGES.admin, schema }, async (request, reply) => {
    const tools = { database, actor: actorOf(request) };
    await revokeKey(tools, wabaOf(request).wabaId, accountObjectId(request.params.id));
    return reply.redirect(`${keysPath(request)}?done=revoked`, 303);
  });
}

/** From where a key may be used. */
function keyNetworkPages(app: PortalApp, { database }: PortalContext): void {
  const params = Type.Object({ wabaId: Type.String(), id: Type.String() });
  const show = async (
    request: FastifyRequest<{ Params: Static<typeof params> }>,
    reply: FastifyReply,
    given: { value: string; error: string } | null = null,
  ) => {
    const keys = await listKeys({ database }, wabaOf(request).wabaId);
    const key = keys.find((one) => one.id === request.params.id && one.state === 'active');
    if (key === undefined) throw pageNotFound();
    const path = keysPath(request);
    const field = networkField(given?.value ?? key.allowedNetworks?.join('\n') ?? '', given?.error ?? null);
    const view = {
      ...keyView(request),
      title: 'Networks of an API key',
      trail: [{ label: 'API keys', href: path }],
      lead: html`<code>${key.prefix}…${key.lastFour}</code> ${key.name}`,
      body: postForm(
        viewerOf(request),
        `${path}/${key.id}/networks`,
        html`${field}<div class="buttons"><button class="primary">Save</button><a class="button" href="${path}">Cancel</a></div>`,
      ),
    };
    return sendPage(reply, view, given === null ? 200 : 422);
  };
  const path = `${KEYS_PATH}/:id/networks`;
  app.get(path, { config: PAGES.admin, schema: { params } }, async (request, reply) => show(request, reply));
  const body = Type.Object({ allowedNetworks: Type.String({ maxLength: 4_096 }) });
  const options = { config: PAGES.admin, schema: { params, body } };
  app.post(path, options, async (request, reply) => {
    const value = request.body.allowedNetworks;
    const tools = { database, actor: actorOf(request) };
    try {
      await limitKey(tools, wabaOf(request).wabaId, accountObjectId(request.params.id), linesOf(value));
    } catch (error) {
      if (!(error instanceof RequestError) || error.code !== 'invalid_value') throw error;
      return await show(request, reply, { value, error: error.message });
    }
    return reply.redirect(`${keysPath(request)}?done=limited`, 303);
  });
}

const PATH = `${KEYS_PATH}/requests/:id`;

/** One request for a key: how it stands, revealing its key once, withdrawing it. */
function keyRequestPages(app: PortalApp, context: PortalContext): void {
  const { database } = context;
  const params = Type.Object({ wabaId: Type.String(), id: Type.String() });
  app.get(PATH, { config: PAGES.member, schema: { params } }, async (request, reply) =>
    showRequest(request, reply, context, {
      id: accountObjectId(request.params.id),
      notice: null,
      status: 200,
    }),
  );

  const schema = { params, body: EMPTY_FORM };
  app.post(`${PATH}/reveal`, { config: PAGES.admin, schema }, async (request, reply) => {
    const id = accountObjectId(request.params.id);
    const tools = { database, actor: actorOf(request) };
    const found = await keyRequestOf({ database }, wabaOf(request).wabaId, id);
    if (!mayReveal(viewerOf(request), found)) throw roleRefused();
    try {
      // Shown right here: a page that could be fetched again would have to keep the key.
      const key = await revealKey(tools, wabaOf(request).wabaId, id);
      return showKey(request, reply, context, key);
    } catch (error) {
      return await showRefusal(request, reply, context, { id, error });
    }
  });

  app.post(`${PATH}/withdraw`, { config: PAGES.admin, schema }, async (request, reply) => {
    const id = accountObjectId(request.params.id);
    const tools = { database, actor: actorOf(request) };
    try {
      await withdrawKeyRequest(tools, wabaOf(request).wabaId, id, viewerOf(request).userId);
    } catch (error) {
      return await showRefusal(request, reply, context, { id, error });
    }
    return reply.redirect(`${keysPath(request)}?done=withdrawn`, 303);
  });
}

type Shown = { id: string; notice: Notice | null; status: number };

async function showRequest(
  request: FastifyRequest,
  reply: FastifyReply,
  { database, now }: PortalContext,
  { id, notice, status }: Shown,
): Promise<FastifyReply> {
  const viewer = viewerOf(request);
  const found = await keyRequestOf({ database }, wabaOf(request).wabaId, id);
  const path = keysPath(request);
  const view = {
    ...keyView(request),
    title: `Request ${found.id}`,
    trail: [{ label: 'API keys', href: path }],
    notice,
    body: html`<div class="card">${detailList(requestFacts(found, new Date(now())))}</div>
${nextSteps(viewer, `${path}/requests/${found.id}`, found)}`,
  };
  return sendPage(reply, view, status);
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

/** A request that is refused shows how it stands instead. Rethrows what is no refusal, and what is not there. */
async function showRefusal(
  request: FastifyRequest,
  reply: FastifyReply,
  context: PortalContext,
  { id, error }: { id: string; error: unknown },
): Promise<FastifyReply> {
  if (!(error instanceof RequestError) || error.code.startsWith('unknown_')) throw error;
  const notice = { kind: 'error' as const, text: error.message };
  return await showRequest(request, reply, context, { id, notice, status: 409 });
}

/** The one page that shows a key: it is in no URL and no log, and nothing can show it again. */
function showKey(
  request: FastifyRequest,
  reply: FastifyReply,
  { publicUrl }: PortalContext,
  key: RevealedKey,
): FastifyReply {
  const path = keysPath(request);
  const example = `curl -H 'Authorization: Bearer ${key.apiKey}' ${publicUrl}/me`;
  const replaced =
    key.replacesKeyId !== null &&
    html`<p>API key ${key.replacesKeyId} ${key.replacedEndsAt === null ? 'stays valid until it is revoked.' : html`stays valid until ${exactTime(key.replacedEndsAt)}.`}</p>`;
  return sendPage(reply, {
    ...keyView(request),
    title: 'Your API key',
    trail: [{ label: 'API keys', href: path }],
    notice: { kind: 'warning', text: 'Store it now. Heliograph does not keep it and cannot show it again.' },
    body: html`${codeBlock(key.apiKey, 'API key')}
<p>${key.name}: ${key.scopes.join(', ')}; valid ${key.expiresAt === null ? 'until revoked' : html`until ${exactTime(key.expiresAt)}`}.</p>
${replaced}
<h2>Try it</h2>
${codeBlock(example, 'Example')}
<p><a class="button" href="${path}">I have stored it</a></p>`,
  });
}
