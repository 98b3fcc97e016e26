import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { PAGES } from '../../src/api/portal/access/page-access.ts';
import { pageNotFound } from '../../src/api/portal/access/page-error.ts';
import { sendPage } from '../../src/api/portal/access/send-page.ts';
import { type Viewer, viewerOf } from '../../src/api/portal/access/viewer.ts';
import { codeBlock } from '../../src/api/portal/components/copyable.ts';
import { type Notice, noticeAfter } from '../../src/api/portal/components/notice.ts';
import { detailList } from '../../src/api/portal/components/table.ts';
import { exactTime } from '../../src/api/portal/components/time.ts';
import { type Child, html, type Markup } from '../../src/api/portal/markup.ts';
import type { PageView } from '../../src/api/portal/page.ts';
import type { PortalApp, PortalContext } from '../../src/api/portal/portal-app.ts';
import { findDeliveries, type LoggedDelivery } from '../../src/features/delivery-log/deliveries.ts';
import type { Config } from '../../src/platform/config/config.ts';
import { textOf } from '../../src/platform/json/json-members.ts';
import { deliveryUuidOf } from '../../src/platform/public-ids.ts';
import { workflowUrl } from '../../src/platform/temporal/client-connection.ts';
import { contentOf } from './chat-text.ts';
import { type AskedChoice, numbersOf, readChoice } from './console-choice.ts';
import { consolePage, emptyConsolePage, liveParts } from './console-page.ts';
import { readConsole } from './console-state.ts';
import { consoleAssetUrl } from './sample-files.ts';
import type { SandboxClient, WholeWebhook } from './sandbox-client.ts';
import { SandboxRefusedError } from './sandbox-client.ts';

const DONE = {
  sent: 'The message was sent.',
  tenant: 'The responses of the sample tenant are changed.',
  burst: '100 messages were sent.',
  field: 'The change was reported.',
};

const line = Type.Optional(Type.String({ maxLength: 100 }));

/** Answers with the console, and with a notice where a form did not work. */
export async function sendConsole(
  { database }: PortalContext,
  client: SandboxClient,
  request: FastifyRequest,
  reply: FastifyReply,
  {
    asked,
    reply: replyTo,
    notice,
  }: { asked: AskedChoice; reply?: string | undefined; notice: Notice | null },
): Promise<FastifyReply> {
  const viewer = viewerOf(request);
  const choice = await readChoice(database, client, viewer, asked);
  if (choice === null) return sendPage(reply, emptyConsolePage(viewer));
  const state = await readConsole(database, client, choice);
  const replyNumber = /^\d{1,9}$/.test(replyTo ?? '') ? Number(replyTo) : null;
  const apiUrl = `${request.protocol}://${request.host}`;
  const view = consolePage({ viewer, state, apiUrl, replyNumber, notice });
  return sendPage(reply, view, notice?.kind === 'error' ? 422 : 200);
}

/** The pages that show something. */
export function consoleViews(app: PortalApp, context: PortalContext, client: SandboxClient): void {
  const { database } = context;
  app.get(
    '/portal/sandbox',
    {
      config: PAGES.signedIn,
      schema: { querystring: Type.Object({ number: line, customer: line, reply: line, done: line }) },
    },
    async (request, reply) => {
      const { done, reply: replyTo, ...asked } = request.query;
      const notice = noticeAfter(done, DONE);
      return await sendConsole(context, client, request, reply, { asked, reply: replyTo, notice });
    },
  );
  app.get(
    '/portal/sandbox/live',
    {
      config: { ...PAGES.signedIn, polled: true },
      schema: { querystring: Type.Object({ number: line, customer: line, seen: line }) },
    },
    async (request, reply) => {
      const viewer = viewerOf(request);
      const choice = await readChoice(database, client, viewer, request.query);
      if (choice === null) throw pageNotFound();
      const parts = liveParts(viewer, await readConsole(database, client, choice));
      const seen = new Set(request.query.seen?.split('.'));
      const changed = Object.entries(parts)
        .map(([id, markup]) => ({ id, hash: hashOf(`${id}${markup}`), html: markup.toString() }))
        .filter(({ hash }) => !seen.has(hash));
      return reply.send({ parts: changed });
    },
  );
  registerDetails(app, context, client);
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

/** Types that a browser shows or plays without running anything in them. */
const SHOWN_TYPES = /^(?:image\/(?:jpeg|png|webp|gif)|audio\/[\w.+-]+|video\/[\w.+-]+)(?:;|$)/;

function registerDetails(app: PortalApp, { database, config }: PortalContext, client: SandboxClient): void {
  app.get(
    '/portal/sandbox/webhooks/:n',
    {
      config: PAGES.signedIn,
      schema: { params: Type.Object({ n: Type.String({ pattern: '^\\d{1,9}$' }) }) },
    },
    async (request, reply) => {
      const viewer = viewerOf(request);
      const webhook = await client.webhook(Number(request.params.n)).catch(missing);
      const numbers = await numbersOf(database, viewer);
      if (!numbers.some(({ wabaId }) => wabaId === webhook.name)) throw pageNotFound();
      const uuid = deliveryUuidOf(webhook.headers['x-service-delivery-id'] ?? '');
      const outlooks = await findDeliveries(database, webhook.name, uuid === null ? [] : [uuid]);
      const [outlook = null] = outlooks.values();
      return sendPage(reply, webhookPage(viewer, webhook, outlook, config.temporal));
    },
  );
  app.get(
    '/portal/sandbox/media/:id',
    {
      config: PAGES.signedIn,
      schema: {
        params: Type.Object({ id: Type.String({ maxLength: 64 }) }),
        querystring: Type.Object({ number: line }),
      },
    },
    async (request, reply) => {
      const choice = await readChoice(database, client, viewerOf(request), request.query);
      const chat = choice === null ? [] : await client.chat(choice.number.wabaId);
      const { id } = request.params;
      if (!chat.some((entry) => textOf(contentOf(entry).id) === id)) throw pageNotFound();
      const { bytes, mimeType } = await client.media(id).catch(missing);
      const isShown = SHOWN_TYPES.test(mimeType);
      return reply
        .header('content-security-policy', "sandbox; default-src 'none'")
        .header('content-disposition', isShown ? 'inline' : 'attachment')
        .header('cache-control', 'private, max-age=600')
        .type(isShown ? mimeType : 'application/octet-stream')
        .send(bytes);
    },
  );
}

/** What the sandbox does not have is what every missing page is. */
function missing(error: unknown): never {
  throw error instanceof SandboxRefusedError ? pageNotFound() : error;
}

const MAX_SHOWN_CHARACTERS = 40_000;

/** One webhook as it came over the wire: who carried it, headers, body. */
function webhookPage(
  viewer: Viewer,
  webhook: WholeWebhook,
  outlook: LoggedDelivery | null,
  temporal: Config['temporal'],
): PageView {
  const { n, headers, body, receivedAt, status, verified } = webhook;
  const names = Object.keys(headers).sort(byInterest);
  return {
    title: `Received webhook ${n}`,
    viewer,
    active: 'sandbox',
    assets: [consoleAssetUrl('sandbox.css')],
    trail: [{ label: 'Sandbox console', href: '/portal/sandbox' }],
    body: html`<div id="whole-webhook">
${detailList([...facts(webhook, outlook, temporal), ['Received', exactTime(new Date(receivedAt))], ['Signature', verified ? '✓ valid' : '✕ invalid'], ['Response', status === null ? 'none' : String(status)]])}
<h3>Headers</h3>
${codeBlock(names.map((name) => `${name}: ${headers[name]}`).join('\n'), 'Headers')}
<h3>Body</h3>
${codeBlock(readable(body).slice(0, MAX_SHOWN_CHARACTERS), 'Body')}
</div>`,
  };
}

function facts(
  { name, webhookId, headers }: WholeWebhook,
  outlook: LoggedDelivery | null,
  temporal: Config['temporal'],
): [string, Child][] {
  const workflowId = outlook?.workflowId ?? null;
  const url = workflowId === null ? null : workflowUrl(temporal, workflowId);
  const delivery = headers['x-service-delivery-id'] ?? '';
  const deliveryPath = `/portal/w/${encodeURIComponent(name)}/deliveries/${encodeURIComponent(delivery)}`;
  return [
    [
      'Workflow',
      url === null
        ? faint('shown once the attempt is recorded')
        : html`<a href="${url}" target="_blank" rel="noopener"><code>${workflowId}</code></a>`,
    ],
    ['Delivery', outlook === null ? '–' : html`<a href="${deliveryPath}"><code>${delivery}</code></a>`],
    ['eventId', html`<code>${headers['x-service-event-id'] ?? ''}</code>`],
    ['webhook-id', html`<code>${webhookId}</code>`],
    ['Sequence', html`${headers['x-service-sequence'] ?? '–'} ${faint('of its ordering key')}`],
  ];
}

function faint(words: string): Markup {
  return html`<span class="faint">${words}</span>`;
}

/** Ours first: those of the connection are the same on every request. */
function byInterest(one: string, other: string): number {
  const rank = (name: string) => (/^(webhook-|x-service-|idempotency)/.test(name) ? 0 : 1);
  return rank(one) - rank(other) || one.localeCompare(other);
}

/** Indented. Numbers are shown as they were written only where JSON of this program writes them so. */
function readable(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}
