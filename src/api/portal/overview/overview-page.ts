import {
  chartSpan,
  type LatencyStep,
  type OutcomeStep,
  readLatency,
  readOutcomes,
} from '../../../deliveries/search/tenant-overview.ts';
import { MAX_SHOWN_WAITING, shownCount } from '../../../deliveries/shown-count.ts';
import { countRecentlyFailed } from '../../../endpoints/endpoint-failures.ts';
import { type EndpointStatus, endpointsOf } from '../../../endpoints/endpoints.ts';
import { shownUrl } from '../../../platform/http/shown-url.ts';
import { PAGES } from '../access/page-access.ts';
import { sendPage } from '../access/send-page.ts';
import { type Viewer, viewerOf } from '../access/viewer.ts';
import { wabaOf } from '../access/waba-of.ts';
import { emptyState } from '../components/empty-state.ts';
import { type Stat, statRow } from '../components/stat.ts';
import { dataTable } from '../components/table.ts';
import { durationText } from '../components/time.ts';
import { endpointPath, endpointsPath, failedPath, mayChange } from '../endpoints/endpoint-context.ts';
import { modeBadge, modeSentence, successRate, waitingText } from '../endpoints/endpoint-status.ts';
import { html, type Markup } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { stepText } from './chart-frame.ts';
import { latencyChart } from './latency-chart.ts';
import { outcomeChart } from './outcome-chart.ts';

/** GET /portal/w/:wabaId: whether events arrive, how fast, and what needs a look. */
export function overviewPages(app: PortalApp, { accounts, database, now }: PortalContext): void {
  app.get('/portal/w/:wabaId', { config: PAGES.member }, async (request, reply) => {
    const waba = wabaOf(request);
    const viewer = viewerOf(request);
    const until = new Date(now());
    const span = await chartSpan(database, waba.wabaId, until);
    const [endpoints, outcomes, latency, failed] = await Promise.all([
      endpointsOf(accounts, waba.wabaId, { maxWaiting: MAX_SHOWN_WAITING }),
      readOutcomes(database, waba.wabaId, { until, span }),
      readLatency(database, waba.wabaId, { until, span }),
      countRecentlyFailed(database, waba.wabaId),
    ]);
    const body =
      endpoints.length === 0
        ? firstSteps(waba.wabaId, viewer)
        : html`${statRow(statsOf(endpoints, outcomes, latency, failed))}
${needsALook(endpoints, failed)}
<div class="columns charts"><section class="card"><h2>Attempts per ${stepText(span)}</h2>${outcomeChart(outcomes, span)}</section>
<section class="card"><h2>Delivery latency</h2>${latencyChart(latency, span)}</section></div>`;
    return sendPage(reply, {
      title: 'Overview',
      viewer,
      waba,
      active: 'overview',
      lead: 'The last 24 hours of this WABA.',
      assets: ['overview.css'],
      body,
    });
  });
}

function firstSteps(wabaId: string, viewer: Viewer): Markup {
  const path = endpointsPath(wabaId);
  return emptyState(
    'No endpoint yet',
    'Add the https URL of your server. It then receives every message, status, payment and order, signed and in order.',
    mayChange(viewer)
      ? html`<a class="button primary" href="${path}/new">Add a webhook endpoint</a>`
      : html`An administrator of your organisation can add one.`,
  );
}

function statsOf(
  endpoints: readonly EndpointStatus[],
  outcomes: readonly OutcomeStep[],
  latency: readonly LatencyStep[],
  failed: ReadonlyMap<string, number>,
): Stat[] {
  const successes = outcomes.reduce((sum, step) => sum + step.successes, 0);
  const failures = outcomes.reduce((sum, step) => sum + step.failures, 0);
  const paused = endpoints.filter(({ mode }) => mode === 'paused').length;
  const failing = endpoints.filter(isInTrouble).length - paused;
  const waiting = endpoints.reduce((sum, { waiting: { count } }) => sum + count, 0);
  const more = endpoints.some((endpoint) => endpoint.waiting.more);
  const oldestMs = Math.max(0, ...endpoints.map((endpoint) => endpoint.waiting.oldestMs ?? 0));
  const failedCount = [...failed.values()].reduce((sum, count) => sum + count, 0);
  const recent = latency.findLast((step) => step.p50Ms !== null);
  return [
    {
      label: 'Success rate',
      value: successRate({ successes, failures }) ?? '–',
      note: `${successes.toLocaleString('en-US')} of ${(successes + failures).toLocaleString('en-US')} attempts`,
    },
    {
      label: 'Latency p50',
      value: recent?.p50Ms == null ? '–' : durationText(recent.p50Ms),
      note: recent?.p95Ms == null ? 'no deliveries' : `p95 ${durationText(recent.p95Ms)}`,
    },
    {
      label: 'Pending',
      value: shownCount({ count: waiting, more }),
      note: waiting === 0 ? 'no backlog' : `oldest ${durationText(oldestMs)}`,
      ...(oldestMs > 60_000 && { tone: 'waiting' as const }),
    },
    {
      label: 'Failed for good',
      value: failedCount.toLocaleString('en-US'),
      note: failedCount === 0 ? 'no failures' : 'no more attempts follow',
      ...(failedCount > 0 && { tone: 'bad' as const }),
    },
    {
      label: 'Failing endpoints',
      value: failing,
      note: paused === 0 ? `of ${endpoints.length}` : `of ${endpoints.length}, ${paused} paused`,
      ...(failing > 0 && { tone: 'bad' as const }),
    },
  ];
}

function isInTrouble({ mode, failingSince }: EndpointStatus): boolean {
  return mode !== 'open' || failingSince !== null;
}

function needsALook(endpoints: readonly EndpointStatus[], failed: ReadonlyMap<string, number>): Markup {
  const troubled = endpoints.filter((endpoint) => isInTrouble(endpoint) || failed.has(endpoint.id));
  if (troubled.length === 0)
    return html`<p class="all-well"><span aria-hidden="true">✓</span> All endpoints accept deliveries.</p>`;
  return html`<h2>Needs attention</h2>${dataTable(
    'Endpoints that need attention',
    [
      { label: 'Endpoint' },
      { label: 'Status', kind: 'narrow' },
      { label: 'Details' },
      { label: 'Pending', kind: 'number' },
      { label: 'Failed for good', kind: 'number' },
    ],
    troubled.map((endpoint) => [
      html`<a class="break" href="${endpointPath(endpoint.wabaId, endpoint.id)}">${shownUrl(endpoint.url)}</a>`,
      modeBadge(endpoint),
      html`${modeSentence(endpoint)}${endpoint.modeReason !== null && html` <span class="faint">${endpoint.modeReason}</span>`}`,
      waitingText(endpoint.waiting),
      failedText(endpoint, failed.get(endpoint.id) ?? 0),
    ]),
  )}`;
}

function failedText({ wabaId, id }: EndpointStatus, failed: number): Markup {
  if (failed === 0) return html`<span class="faint">–</span>`;
  return html`<a href="${failedPath(wabaId, id)}">${failed.toLocaleString('en-US')}</a>`;
}
