import { countRecentlyFailed } from '../../../engine/endpoint/endpoint-failures.ts';
import { MAX_SHOWN_WAITING, shownCount } from '../../../engine/queue/waiting.ts';
import { searchDeliveries } from '../../../features/delivery-log/delivery-search.ts';
import {
  CHART_SPANS,
  type LatencyStep,
  type OutcomeStep,
  readLatency,
  readOutcomes,
} from '../../../features/delivery-log/tenant-overview.ts';
import { type EndpointStatus, endpointsOf } from '../../../features/endpoints/endpoints.ts';
import { PAGES } from '../access/page-access.ts';
import { noticeBox } from '../components/notice.ts';
import { dataTable, type Stat, statRow } from '../components/table.ts';
import { durationText } from '../components/time.ts';
import { deliveryTable } from '../deliveries/delivery-table.ts';
import { makeAwaySentence } from '../dependencies.ts';
import {
  endpointName,
  endpointPath,
  failedPath,
  isInTrouble,
  modeBadge,
  modeSentence,
  successRate,
  waitingText,
} from '../endpoints/endpoint-status.ts';
import { viewPage } from '../kits/view-page.ts';
import type { Visit } from '../kits/visit.ts';
import { html, type Markup, nothing } from '../markup.ts';
import { hrefWith } from '../navigation.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { firstSteps } from './first-steps.ts';
import { latencyChart, outcomeChart, spanText, stepText } from './overview-charts.ts';

type Span = keyof typeof CHART_SPANS;

const SPANS: readonly (readonly [Span, string])[] = [
  ['day', '24 hours'],
  ['hour', '1 hour'],
];

export function overviewPages(app: PortalApp, context: PortalContext): void {
  const awaySentence = makeAwaySentence(context);
  const view = async (visit: Visit) => {
    const { waba, now: until } = visit;
    const { accounts, database } = context;
    const asked = SPANS.find(([name]) => name === visit.query('span'))?.[0] ?? 'day';
    const span = CHART_SPANS[asked];
    const [away, endpoints, outcomes, latency, failed] = await Promise.all([
      awaySentence(),
      endpointsOf(accounts, waba.wabaId, { maxWaiting: MAX_SHOWN_WAITING }),
      readOutcomes(database, waba.wabaId, { until, span }),
      readLatency(database, waba.wabaId, { until, span }),
      countRecentlyFailed(database, waba.wabaId),
    ]);
    const figures = { endpoints, outcomes, latency, failed };
    const steps = await firstSteps(visit, endpoints);
    const body =
      endpoints.length === 0
        ? steps
        : html`${statRow(statsOf(visit, figures))}
${needsALook(visit, figures)}${steps}
<div class="columns charts"><section class="card"><h2>Attempts per ${stepText(span)}</h2>${outcomeChart(outcomes, span)}</section>
<section class="card"><h2>Delivery latency</h2>${latencyChart(latency, span)}</section></div>
${await newest(visit, figures)}`;
    return {
      title: 'Overview',
      lead: endpoints.length > 0 && `Webhooks of this WABA in ${spanText(span)}.`,
      actions: endpoints.length > 0 && spanSwitch(visit.path, asked),
      assets: ['overview.css', 'webhooks.css'],
      body: html`${away !== null && noticeBox({ kind: 'warning', text: away })}${body}`,
    };
  };
  const place = { path: '/portal/w/:wabaId', access: PAGES.member, active: 'overview' };
  viewPage(app, context, { ...place, query: ['span'], view });
}

function spanSwitch(path: string, asked: Span): Markup {
  const links = SPANS.map(
    ([name, label]) =>
      html`<a href="${hrefWith(path, { span: name === 'day' ? '' : name })}" ${name === asked && html`aria-current="page"`}>${label}</a>`,
  );
  return html`<nav class="views" aria-label="Time">${links}</nav>`;
}

type Figures = {
  endpoints: readonly EndpointStatus[];
  outcomes: readonly OutcomeStep[];
  latency: readonly LatencyStep[];
  failed: ReadonlyMap<string, number>;
};

const NEWEST = 6;
const DAY_MS = 86_400_000;

/** What failed or is retried, and what came last. */
async function newest(visit: Visit, { endpoints, failed }: Figures): Promise<Markup> {
  const { context, waba, viewer, now } = visit;
  await visit.noteListRead('deliveries.listed', [waba.wabaId]);
  const since = new Date(now.getTime() - DAY_MS);
  const find = async (state: string | undefined, limit: number) =>
    (await searchDeliveries(context, waba.wabaId, { state, since }, { before: null, limit })).deliveries;
  // Neither is looked for where the counters know of none: that would read a day of deliveries.
  const isRetrying = endpoints.some(({ waiting }) => waiting.retrying > 0);
  const [last, lost, pending] = await Promise.all([
    find(undefined, NEWEST),
    failed.size > 0 ? find('failed', NEWEST) : [],
    isRetrying ? find('pending', 4 * NEWEST) : [],
  ]);
  const failures = [...lost, ...pending.filter(({ attempts }) => attempts > 0)]
    .toSorted((a, b) => b.createdAt.getTime() - a.createdAt.getTime())
    .slice(0, NEWEST);
  const list = `${visit.path}/deliveries`;
  const table = {
    viewer,
    now,
    hrefOf: (id: string) => `${list}/${id}`,
    withOwner: false,
    withEndpoint: true,
  };
  const part = (heading: string, caption: string, deliveries: typeof last, href: string, label: string) =>
    deliveries.length === 0
      ? nothing
      : html`<h2>${heading}</h2>${deliveryTable({ ...table, caption, deliveries })}<p><a href="${href}">${label}</a></p>`;
  return html`${part('Newest failures', 'Newest failures', failures, `${list}?state=failed`, 'All that failed permanently')}
${part('Newest deliveries', 'Deliveries', last, list, 'All deliveries')}`;
}

function statsOf({ path }: Visit, { endpoints, outcomes, latency, failed }: Figures): Stat[] {
  const list = (filters: Record<string, string>) => hrefWith(`${path}/deliveries`, filters);
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
      href: list({ range: '24h' }),
      value: successRate({ successes, failures }) ?? '–',
      note: `${successes.toLocaleString('en-US')} of ${(successes + failures).toLocaleString('en-US')} attempts`,
    },
    {
      label: 'Latency p50',
      href: list({ range: '24h', state: 'delivered' }),
      value: recent?.p50Ms == null ? '–' : durationText(recent.p50Ms),
      note: recent?.p95Ms == null ? 'no deliveries' : `p95 ${durationText(recent.p95Ms)}`,
    },
    {
      label: 'Pending',
      href: list({ state: 'pending' }),
      value: shownCount({ count: waiting, more }),
      note: waiting === 0 ? 'no backlog' : `oldest ${durationText(oldestMs)}`,
      tone: oldestMs > 60_000 && 'waiting',
    },
    {
      label: 'Failed permanently, 24 h',
      href: list({ range: '24h', state: 'failed' }),
      value: failedCount.toLocaleString('en-US'),
      note: failedCount === 0 ? 'no failures' : 'no more attempts follow',
      tone: failedCount > 0 && 'bad',
    },
    {
      label: 'Failing endpoints',
      href: `${path}/endpoints`,
      value: failing,
      note: paused === 0 ? `of ${endpoints.length}` : `of ${endpoints.length}, ${paused} paused`,
      tone: failing > 0 && 'bad',
    },
  ];
}

function needsALook({ viewer }: Visit, { endpoints, outcomes, failed }: Figures): Markup {
  const troubled = endpoints.filter((endpoint) => isInTrouble(endpoint) || failed.has(endpoint.id));
  if (troubled.length === 0) {
    const failures = outcomes.reduce((sum, step) => sum + step.failures, 0);
    const text = 'All endpoints accept deliveries';
    return failures === 0
      ? html`<p class="all-well"><span aria-hidden="true">✓</span> ${text}.</p>`
      : html`<p>${text} again. The failed attempts were retried with success, or still are.</p>`;
  }
  return html`<h2>Needs attention</h2>${dataTable(
    'Endpoints that need attention',
    [
      'Endpoint',
      { label: 'Status', kind: 'narrow' },
      'Details',
      { label: 'Pending', kind: 'number' },
      { label: 'Failed permanently', kind: 'number' },
    ],
    troubled.map((endpoint) => [
      html`<a class="break" href="${endpointPath(endpoint.wabaId, endpoint.id)}">${endpointName(viewer, endpoint)}</a>`,
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
