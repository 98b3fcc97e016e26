import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { searchDeliveries } from '../../../deliveries/search/delivery-search.ts';
import { shownCount } from '../../../deliveries/shown-count.ts';
import { countRecentlyFailed } from '../../../endpoints/endpoint-failures.ts';
import { type EndpointStep, readEndpointStatistics } from '../../../endpoints/endpoint-statistics.ts';
import { type EndpointStatus, endpointStatus } from '../../../endpoints/endpoints.ts';
import type { AccountError } from '../../../platform/account-error.ts';
import { shownUrl } from '../../../platform/http/shown-url.ts';
import { accountObjectId } from '../../external/object-id.ts';
import { PAGES } from '../access/page-access.ts';
import { sendPage } from '../access/send-page.ts';
import { type Viewer, viewerOf } from '../access/viewer.ts';
import { wabaOf } from '../access/waba-of.ts';
import { actionButton } from '../components/form.ts';
import { type Notice, noticeAfter } from '../components/notice.ts';
import { statRow } from '../components/stat.ts';
import { durationText, relativeText, utcText } from '../components/time.ts';
import { deliveryTable } from '../deliveries/delivery-table.ts';
import { type Child, html, type Markup } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { attemptChart } from './attempt-chart.ts';
import { endpointPath, endpointsPath, failedPath, mayChange } from './endpoint-context.ts';
import { modeControls, secretControls } from './endpoint-controls.ts';
import { settingsList } from './endpoint-settings.ts';
import { modeBadge, modeSentence, successRate } from './endpoint-status.ts';
import { verifySamples } from './verify-samples.ts';

const HOUR_MS = 3_600_000;
const RECENT = 10;

const DONE = {
  saved: 'The settings are saved.',
  moved: html`The settings are saved. The previous server still knows the signing secret: <a href="#secret">rotate it</a>.`,
  'moved-without-headers': html`The settings are saved. The URL leads to another server, so your own headers were removed: enter them again if it needs them. The previous server still knows the signing secret: <a href="#secret">rotate it</a>.`,
  paused: 'The endpoint is paused. Its events wait.',
  disabled: 'The endpoint is disabled. Its events wait.',
  enabled: 'The endpoint is enabled.',
  sent: 'The endpoint is enabled. Pending events are sent first, in order.',
  dropped: 'The endpoint is enabled. Pending events were dropped and stay in the log.',
};

const Params = Type.Object({ wabaId: Type.String(), id: Type.String() });

/** GET /portal/w/:wabaId/endpoints/:id */
export function endpointPage(app: PortalApp, context: PortalContext): void {
  const querystring = Type.Object({ done: Type.Optional(Type.String()) });
  const options = { config: PAGES.member, schema: { params: Params, querystring } };
  app.get('/portal/w/:wabaId/endpoints/:id', options, async (request, reply) =>
    sendEndpointPage(request, reply, context, {
      id: request.params.id,
      notice: noticeAfter(request.query.done, DONE),
      error: null,
    }),
  );
}

/** The page of an endpoint; `error` is about a form on it. Throws AccountError `unknown_endpoint`, ApiError 404. */
export async function sendEndpointPage(
  request: FastifyRequest,
  reply: FastifyReply,
  context: PortalContext,
  { id, notice, error }: { id: string; notice: Notice | null; error: AccountError | null },
): Promise<FastifyReply> {
  const waba = wabaOf(request);
  const viewer = viewerOf(request);
  const endpoint = await endpointStatus(context.accounts, waba.wabaId, accountObjectId(id));
  const path = endpointPath(waba.wabaId, endpoint.id);
  const view = {
    title: endpoint.description || new URL(endpoint.url).host,
    ...{ viewer, waba },
    active: 'endpoints',
    lead: html`<code class="break">${mayChange(viewer) ? endpoint.url : shownUrl(endpoint.url)}</code>`,
    trail: [{ label: 'Webhook endpoints', href: endpointsPath(waba.wabaId) }],
    actions: mayChange(viewer) && pageActions(viewer, path),
    notice: error === null ? notice : { kind: 'error' as const, text: error.message },
    assets: ['webhooks.css'],
    body: await bodyOf(context, viewer, endpoint),
  };
  return sendPage(reply, view, error === null ? 200 : 422);
}

function pageActions(viewer: Viewer, path: string): Markup {
  return html`<a class="button" href="${path}/edit">Edit</a>${actionButton(viewer, `${path}/test`, 'Send test event', 'primary')}`;
}

async function bodyOf(context: PortalContext, viewer: Viewer, endpoint: EndpointStatus): Promise<Markup> {
  const { database, config } = context;
  const { id, wabaId } = endpoint;
  const path = endpointPath(wabaId, id);
  const now = new Date(context.now());
  const until = new Date(Math.floor(now.getTime() / HOUR_MS + 1) * HOUR_MS);
  const since = new Date(until.getTime() - 24 * HOUR_MS);
  const [steps, recent, failed] = await Promise.all([
    readEndpointStatistics(database, wabaId, id, { interval: 'hour', since, until }),
    searchDeliveries({ database }, wabaId, { endpointId: id }, { before: null, limit: RECENT }),
    countRecentlyFailed(database, wabaId),
  ]);
  const defaults = {
    retryScheduleSeconds: config.webhooks.retryScheduleMs.map((ms) => ms / 1_000),
    timeoutMs: config.webhooks.timeoutMs,
  };
  const base = `/portal/w/${encodeURIComponent(wabaId)}/deliveries`;
  const table = { now, hrefOf: (one: string) => `${base}/${one}`, withOwner: false, withEndpoint: false };
  return html`<div class="card state"><p>${modeBadge(endpoint)} ${modeSentence(endpoint)}</p>
${modeFacts(endpoint, now)}${mayChange(viewer) && modeControls(viewer, path, endpoint)}</div>
${figures(endpoint, steps, failed.get(id) ?? 0, now)}
${steps.some(({ successes, failures }) => successes + failures > 0) && attemptChart(steps)}
<h2>Recent deliveries</h2>
${
  recent.deliveries.length === 0
    ? html`<p class="faint">No deliveries within seven days.</p>`
    : html`${deliveryTable({ ...table, deliveries: recent.deliveries })}<p><a href="${base}?endpointId=${id}">All deliveries to this endpoint</a></p>`
}
<h2>Settings</h2>
<div class="card">${settingsList(endpoint, defaults)}</div>
<h2 id="secret">Signing secret</h2>
<div class="card">${secretControls(viewer, path, endpoint)}</div>
<h2>Verify the signature</h2>
<p class="lead">Verify it over the raw bytes, before you parse them. See also the <a href="/portal/w/${wabaId}/event-types">event types</a>.</p>
${verifySamples(endpoint.signatureProfile)}
${mayChange(viewer) && html`<h2>Delete</h2><p><a class="button danger" href="${path}/delete">Delete this endpoint</a></p>`}`;
}

function modeFacts(
  { mode, modeReason, modeChangedAt, failingSince, nextProbeAt }: EndpointStatus,
  now: Date,
): Child {
  const facts = [
    modeReason !== null && `Reason: ${modeReason}`,
    mode !== 'open' && `since ${utcText(modeChangedAt)}`,
    failingSince !== null && `failing for ${durationText(now.getTime() - failingSince.getTime())}`,
    nextProbeAt !== null && mode === 'probing' && `next probe ${relativeText(nextProbeAt, now)}`,
  ].filter((fact) => fact !== false);
  return facts.length > 0 && html`<p class="faint">${facts.join(' · ')}</p>`;
}

function figures(
  { id, wabaId, waiting }: EndpointStatus,
  steps: readonly EndpointStep[],
  failed: number,
  now: Date,
): Markup {
  const sum = (key: 'successes' | 'failures' | 'totalMs') =>
    steps.reduce((total, step) => total + step[key], 0);
  const [successes, failures] = [sum('successes'), sum('failures')];
  const attempts = successes + failures;
  const rate = successRate({ successes, failures });
  const oldest = waiting.oldestMs === null ? null : new Date(now.getTime() - waiting.oldestMs);
  const parts = [
    waiting.retrying > 0 && `${waiting.retrying} retrying`,
    waiting.queued > 0 && `${waiting.queued} behind an earlier event`,
    waiting.unreleased > 0 && `${waiting.unreleased} waiting for catalog data`,
    waiting.suspended > 0 && `${waiting.suspended} of paused replays`,
  ].filter((part) => part !== false);
  return statRow([
    {
      label: 'Success rate, 24 h',
      value: rate ?? '–',
      ...(failures > attempts / 10 && { tone: 'bad' as const }),
      note: `${attempts} attempts`,
    },
    { label: 'Failed attempts, 24 h', value: failures },
    {
      label: 'Failed for good, 24 h',
      value: failed,
      note: failed === 0 ? 'no failures' : html`<a href="${failedPath(wabaId, id)}">Show them</a>`,
      ...(failed > 0 && { tone: 'bad' as const }),
    },
    { label: 'Mean response time', value: attempts === 0 ? '–' : durationText(sum('totalMs') / attempts) },
    {
      label: 'Pending',
      value: shownCount(waiting),
      ...(waiting.count > 0 && { tone: 'waiting' as const }),
      note: waiting.count === 0 ? 'no backlog' : parts.join(', '),
    },
    { label: 'Oldest pending', value: oldest === null ? '–' : relativeText(oldest, now) },
  ]);
}
