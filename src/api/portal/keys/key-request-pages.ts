import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { KeyRequest } from '../../../keys/key-request-store.ts';
import { keyRequestOf, withdrawKeyRequest } from '../../../keys/key-requests.ts';
import { type RevealedKey, revealKey } from '../../../keys/reveal-key.ts';
import { AccountError } from '../../../platform/account-error.ts';
import { accountObjectId } from '../../external/object-id.ts';
import { EMPTY_FORM } from '../access/form-schema.ts';
import { PAGES } from '../access/page-access.ts';
import { roleRefused } from '../access/page-error.ts';
import { sendPage } from '../access/send-page.ts';
import { actorOf, type Viewer, viewerOf } from '../access/viewer.ts';
import { wabaOf } from '../access/waba-of.ts';
import { codeBlock } from '../components/copyable.ts';
import { actionButton } from '../components/form.ts';
import type { Notice } from '../components/notice.ts';
import { detailList } from '../components/table.ts';
import { exactTime } from '../components/time.ts';
import { html, type Markup } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { requestFacts } from './key-tables.ts';
import { KEYS_PATH, keysPath, keyView } from './key-view.ts';

const PATH = `${KEYS_PATH}/requests/:id`;

/** One request for a key: how it stands, revealing its key once, withdrawing it. */
export function keyRequestPages(app: PortalApp, context: PortalContext): void {
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
      // Answered right here: a page that could be fetched again would have to keep the key.
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
  if (!(error instanceof AccountError) || error.code.startsWith('unknown_')) throw error;
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
