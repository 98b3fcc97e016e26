import cookie from '@fastify/cookie';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { brandOf } from '../../features/accounts/brands.ts';
import {
  makeSetup,
  type OwnLink,
  SETUP_CALLBACK_PATH,
  type Setup,
} from '../../features/setup-links/set-up.ts';
import type { SetupVisit } from '../../features/setup-links/setup-visit.ts';
import { checkWaba, type WabaCheckTools } from '../../ops/health/waba-check.ts';
import type { Config } from '../../platform/config/config.ts';
import { setupRowOf } from '../../platform/public-ids.ts';
import { RequestError } from '../../platform/request-input.ts';
import type { UpstreamCalls } from '../external/upstream-calls.ts';
import { readFormBodies } from '../plugins/body-parsers.ts';
import { formRefused, reportedError } from '../portal/access/page-error.ts';
import { PAGE_HEADERS } from '../portal/access/send-page.ts';
import { formValues } from '../portal/form-values.ts';
import { html } from '../portal/markup.ts';
import { renderPage } from '../portal/page.ts';
import { guardBodies } from '../shares/client-shares.ts';
import type { ConnectionShares } from '../shares/connection-shares.ts';
import { nonceCookie } from './setup-cookie.ts';
import { UNKNOWN_LINK } from './setup-texts.ts';
import { dialogView, type SetupPage, setupView } from './setup-view.ts';

/** Of the API's context: what links are made of, and what the checks of a WABA ask. */
type SetupTools = WabaCheckTools & {
  config: Config;
  upstream: Pick<UpstreamCalls, 'client'>;
  shares: ConnectionShares;
};

type SetupContext = SetupTools & { setup: Setup };

/** Forms are read before anybody is known; the largest field is an access token. */
const BODY_LIMITS = { maxBytes: 8 * 1024 * 1024, maxBytesPerOwner: 1024 * 1024 };
const BODY_LIMIT_BYTES = 16 * 1024;

const OPEN = '/setup/open/:token';
const OWN = '/setup/links/:id';

/** A page that was there: the link is over. */
const GONE = 410;

type Route = { Params: { token: string; id: string } };

/** The pages on which a customer connects a number by a link: no session, and no cookie of the portal. */
export async function setupRoutes(scope: FastifyInstance, tools: SetupTools): Promise<void> {
  const { accounts, config, publicUrl, upstream } = tools;
  const { client } = upstream;
  const setup = makeSetup({ ...accounts, publicUrl, upstream: config.upstream, client });
  const context = { ...tools, setup };
  guardBodies(scope, BODY_LIMITS);
  await scope.register(cookie);
  readFormBodies(scope);
  const publicOrigin = new URL(context.publicUrl).origin;
  scope.addHook('onRequest', async (_request, reply) => {
    reply.headers(PAGE_HEADERS).header('referrer-policy', 'no-referrer');
  });
  scope.addHook('onRequest', async (request) => {
    if (request.method === 'POST' && !isFromHere(request, publicOrigin)) throw formRefused();
  });
  scope.addHook('onRequest', (_request, _reply, done) =>
    context.shares.serve({ name: 'visitors', member: 'visitors' }, done),
  );
  scope.setErrorHandler(async (error, request, reply) => await sendError(error, request, reply));
  openRoutes(scope, context);
  callbackRoute(scope, context);
  ownRoutes(scope, context);
}

/** Without a referrer a form's origin is null; browsers say beside it whether the form is of this site. */
function isFromHere({ headers }: FastifyRequest, publicOrigin: string): boolean {
  const { origin, 'sec-fetch-site': site } = headers;
  if (site !== undefined) return site === 'same-origin';
  return origin === undefined || origin === 'null' || origin === publicOrigin;
}

/** The link: looking at it, as previews do, uses nothing up; its button does. */
function openRoutes(scope: FastifyInstance, context: SetupContext): void {
  const { setup } = context;
  scope.get<Route>(OPEN, async (request, reply) => {
    const { token } = request.params;
    const visit = await setup.see({ token, nonceOf: nonceCookie.of(request) });
    if (visit === null) return await sendUnknown(reply, context);
    return await sendVisit(reply, context, { visit, startPath: `/setup/open/${token}` });
  });
  scope.post<Route>(OPEN, async (request, reply) => {
    const { token } = request.params;
    try {
      return await begin(reply, context, await setup.start(token));
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      const visit = await setup.see({ token, nonceOf: nonceCookie.of(request) });
      if (visit === null) return await sendUnknown(reply, context);
      return await sendVisit(reply, context, { visit, startPath: `/setup/open/${token}`, error });
    }
  });
}

/** Gives the browser its part of the link, and leads on: to Meta, or to the page of the link. */
async function begin(
  reply: FastifyReply,
  context: SetupContext,
  { id, nonce, expiresAt, dialogUrl }: Awaited<ReturnType<Setup['start']>>,
): Promise<FastifyReply> {
  nonceCookie.set(reply, { id, nonce, expiresAt });
  if (dialogUrl === null) return reply.redirect(`/setup/links/${id}`, 303);
  const visit = await context.setup.see({ id, nonce });
  return await sendPage(reply, context, { page: dialogView(dialogUrl), tenantId: visit?.tenantId ?? null });
}

const CALLBACK_FIELDS = [
  'state',
  'code',
  'error',
  'error_reason',
  'error_code',
  'error_description',
  'current_step',
] as const;

/** Where Meta's dialog sends the browser back to. A HEAD request is no return, so it has no such route. */
function callbackRoute(scope: FastifyInstance, context: SetupContext): void {
  scope.get(SETUP_CALLBACK_PATH, { exposeHeadRoute: false }, async (request, reply) => {
    const values = formValues(request.query);
    const given = CALLBACK_FIELDS.map((name) => [name, values.text(name)]).filter(([, text]) => text !== '');
    const { id } = await context.setup.finishDialog(Object.fromEntries(given), nonceCookie.of(request));
    if (id === null) return await sendUnknown(reply, context);
    return reply.redirect(`/setup/links/${id}`, 303);
  });
}

/** The page of a link in the browser that began it, and the answers to what it asks. */
function ownRoutes(scope: FastifyInstance, context: SetupContext): void {
  const { setup } = context;
  scope.get<Route>(OWN, async (request, reply) => await sendOwn(request, reply, context));
  const answer = (path: string, act: (own: OwnLink, text: (name: string) => string) => Promise<void>) => {
    scope.post<Route>(`${OWN}/${path}`, { bodyLimit: BODY_LIMIT_BYTES }, async (request, reply) => {
      const own = ownLink(request);
      try {
        await act(own, formValues(request.body).text);
      } catch (error) {
        if (!(error instanceof RequestError)) throw error;
        return await sendOwn(request, reply, context, error);
      }
      return reply.redirect(`/setup/links/${own.id}`, 303);
    });
  };
  answer('choice', async (own, text) => await setup.choose(own, text('id')));
  answer('pin', async (own, text) => await setup.givePin(own, text('pin').trim()));
  answer('retry', async (own, text) => {
    const from = (['subscribe', 'register'] as const).find((one) => one === text('from'));
    await setup.retry(own, from);
  });
  answer(
    'token',
    async (own, text) =>
      await setup.giveToken(own, { wabaId: text('wabaId').trim(), accessToken: text('accessToken').trim() }),
  );
  scope.post<Route>(`${OWN}/start`, async (request, reply) => {
    try {
      return await begin(reply, context, await setup.start(ownLink(request)));
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      return await sendOwn(request, reply, context, error);
    }
  });
}

function ownLink(request: FastifyRequest): OwnLink {
  const { id } = request.params as Route['Params'];
  return { id, nonce: nonceCookie.of(request)(setupRowOf(id) ?? '') ?? '' };
}

async function sendOwn(
  request: FastifyRequest,
  reply: FastifyReply,
  context: SetupContext,
  error: RequestError | null = null,
): Promise<FastifyReply> {
  const own = ownLink(request);
  const visit = setupRowOf(own.id) !== null ? await context.setup.see(own) : null;
  if (visit === null) return await sendUnknown(reply, context);
  return await sendVisit(reply, context, { visit, startPath: `/setup/links/${own.id}/start`, error });
}

async function sendVisit(
  reply: FastifyReply,
  context: SetupContext,
  { visit, startPath, error = null }: { visit: SetupVisit; startPath: string; error?: RequestError | null },
): Promise<FastifyReply> {
  const { mode, wabaId, refusal, isWorking, tenantId } = visit;
  const isShown = mode === 'steps' && wabaId !== null && refusal === null && !isWorking;
  const findings = isShown ? await checkWaba(context, wabaId) : null;
  const page = setupView(visit, { path: `/setup/links/${visit.id}`, startPath, error, findings });
  const status = refusal === null ? (error === null ? 200 : 422) : GONE;
  return await sendPage(reply, context, { page, tenantId, status });
}

async function sendUnknown(reply: FastifyReply, context: SetupContext): Promise<FastifyReply> {
  const page = { title: UNKNOWN_LINK.title, body: html`<p>${UNKNOWN_LINK.text}</p>` };
  return await sendPage(reply, context, { page, tenantId: null, status: 404 });
}

async function sendPage(
  reply: FastifyReply,
  { database }: Pick<SetupContext, 'database'>,
  { page, tenantId, status = 200 }: { page: SetupPage; tenantId: string | null; status?: number },
): Promise<FastifyReply> {
  const { refresh, ...view } = page;
  if (refresh !== undefined) {
    const { seconds, url } = refresh;
    reply.header('refresh', url === undefined ? String(seconds) : `${seconds}; url=${url}`);
  }
  const brand = await brandOf(database, tenantId);
  return reply
    .code(status)
    .type('text/html; charset=utf-8')
    .send(renderPage({ ...view, viewer: null, brand, assets: ['overview.css'] }));
}

async function sendError(
  thrown: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { status, title, text, headers } = reportedError(thrown, request);
  const body = html`<p>${text}</p>${status >= 500 && html`<p class="hint">Request <code>${request.id}</code></p>`}`;
  return reply
    .code(status)
    .headers(headers)
    .type('text/html; charset=utf-8')
    .send(renderPage({ title, body, viewer: null }));
}
