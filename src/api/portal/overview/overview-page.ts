import { type ScaleLinear, scaleBand, scaleLinear, scalePoint } from 'd3-scale';
import { line } from 'd3-shape';
import {
  type ChartSpan,
  chartSpan,
  type LatencyStep,
  type OutcomeStep,
  readLatency,
  readOutcomes,
} from '../../../deliveries/search/tenant-overview.ts';
import { countRecentlyFailed } from '../../../endpoints/endpoint-failures.ts';
import { type EndpointStatus, endpointsOf } from '../../../endpoints/endpoints.ts';
import { shownUrl } from '../../../platform/http/outbound-url.ts';
import { MAX_SHOWN_WAITING, shownCount } from '../../../queue/waiting.ts';
import { PAGES } from '../access/page-access.ts';
import type { Viewer } from '../access/viewer.ts';
import { dataTable, emptyState, type Stat, statRow } from '../components/table.ts';
import { durationText } from '../components/time.ts';
import {
  endpointPath,
  endpointsPath,
  failedPath,
  mayChange,
  modeBadge,
  modeSentence,
  successRate,
  waitingText,
} from '../endpoints/endpoint-status.ts';
import { viewPage } from '../kits/view-page.ts';
import type { Visit } from '../kits/visit.ts';
import { type Child, html, type Markup } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';

export function overviewPages(app: PortalApp, context: PortalContext): void {
  const { accounts, database } = context;
  const view = async ({ waba, viewer, now: until }: Visit) => {
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
    const lead = 'The last 24 hours of this WABA.';
    return { title: 'Overview', lead, assets: ['overview.css'], body };
  };
  viewPage(app, context, { path: '/portal/w/:wabaId', access: PAGES.member, active: 'overview', view });
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
      tone: oldestMs > 60_000 && 'waiting',
    },
    {
      label: 'Failed permanently',
      value: failedCount.toLocaleString('en-US'),
      note: failedCount === 0 ? 'no failures' : 'no more attempts follow',
      tone: failedCount > 0 && 'bad',
    },
    {
      label: 'Failing endpoints',
      value: failing,
      note: paused === 0 ? `of ${endpoints.length}` : `of ${endpoints.length}, ${paused} paused`,
      tone: failing > 0 && 'bad',
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
      'Endpoint',
      { label: 'Status', kind: 'narrow' },
      'Details',
      { label: 'Pending', kind: 'number' },
      { label: 'Failed permanently', kind: 'number' },
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

/** Attempts per step: the hatched part of a bar failed. */
function outcomeChart(steps: readonly OutcomeStep[], span: ChartSpan): Markup {
  const x = scaleBand<number>()
    .domain(steps.map((_, index) => index))
    .range([PLOT.left, PLOT.right])
    .padding(0.18);
  const y = upwardScale(Math.max(4, ...steps.map(({ successes, failures }) => successes + failures)));
  const bars = steps.map(({ at, successes, failures }, index) => {
    const left = (x(index) ?? 0).toFixed(1);
    const width = x.bandwidth().toFixed(1);
    const bar = (className: string, from: number, to: number) =>
      to > from &&
      html`<rect class="${className}" x="${left}" width="${width}" y="${y(to).toFixed(1)}" height="${(y(from) - y(to)).toFixed(1)}"/>`;
    return html`<g><title>${clockText(at)} UTC: ${successes} succeeded, ${failures} failed</title>${bar('bar-good', 0, successes)}${bar('bar-bad', successes, successes + failures)}${bar('bar-hatch', successes, successes + failures)}</g>`;
  });
  return chartFigure({
    label: `Attempts per ${stepText(span)} of ${spanText(span)}: ${sum(steps, 'successes')} succeeded, ${sum(steps, 'failures')} failed`,
    legend: html`<span class="key key-good"></span> succeeded <span class="key key-bad"></span> failed (hatched) · times in UTC`,
    y,
    steps: steps.map(({ at }, index) => ({ at, x: (x(index) ?? 0) + x.bandwidth() / 2 })),
    marks: html`<defs><pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line class="hatch" x1="0" x2="0" y1="0" y2="5"/></pattern></defs>${bars}`,
    table: dataTable(
      `Attempts per ${stepText(span)}`,
      ['From (UTC)', { label: 'Succeeded', kind: 'number' }, { label: 'Failed', kind: 'number' }],
      steps.map((hour) => [clockText(hour.at), hour.successes, hour.failures]),
    ),
    yText: (value) => value.toLocaleString('en-US'),
  });
}

function sum(steps: readonly OutcomeStep[], key: 'successes' | 'failures'): string {
  return steps.reduce((total, hour) => total + hour[key], 0).toLocaleString('en-US');
}

/** From an event's storing to its delivery: the median as a full line, the 95th percentile as a broken one. */
function latencyChart(steps: readonly LatencyStep[], span: ChartSpan): Markup {
  const x = scalePoint<number>()
    .domain(steps.map((_, index) => index))
    .range([PLOT.left, PLOT.right])
    .padding(0.5);
  const y = upwardScale(Math.max(10, ...steps.map(({ p95Ms }) => p95Ms ?? 0)));
  const at = (index: number) => x(index) ?? 0;
  const pathOf = (key: 'p50Ms' | 'p95Ms') =>
    line<LatencyStep>()
      .defined((hour) => hour[key] !== null)
      .x((_, index) => at(index))
      .y((hour) => y(hour[key] ?? 0))(steps) ?? '';
  const dots = steps.map((hour, index) => {
    const { p50Ms, p95Ms } = hour;
    if (p50Ms === null || p95Ms === null) return null;
    const title = `${clockText(hour.at)} UTC: p50 ${durationText(p50Ms)}, p95 ${durationText(p95Ms)}`;
    return html`<g><title>${title}</title><circle class="dot-median" cx="${at(index).toFixed(1)}" cy="${y(p50Ms).toFixed(1)}" r="3"/><rect class="dot-p95" x="${(at(index) - 3).toFixed(1)}" y="${(y(p95Ms) - 3).toFixed(1)}" width="6" height="6"/></g>`;
  });
  return chartFigure({
    label: `Delivery latency per ${stepText(span)} of ${spanText(span)}, p50 and p95`,
    legend: html`<span class="key key-median"></span> p50 (round marks) <span class="key key-p95"></span> p95 (square marks) · of up to 200 deliveries in each ${stepText(span)}`,
    y,
    steps: steps.map((hour, index) => ({ at: hour.at, x: at(index) })),
    marks: html`<path class="line-median" d="${pathOf('p50Ms')}"/><path class="line-p95" d="${pathOf('p95Ms')}"/>${dots}`,
    table: dataTable(
      `Delivery latency per ${stepText(span)}`,
      ['From (UTC)', { label: 'p50', kind: 'number' }, { label: 'p95', kind: 'number' }],
      steps.map((hour) => [clockText(hour.at), text(hour.p50Ms), text(hour.p95Ms)]),
    ),
    yText: durationText,
  });
}

function text(ms: number | null): string {
  return ms === null ? '–' : durationText(ms);
}

/** In units of the view box. */
const CHART = { width: 480, height: 190, left: 54, right: 6, top: 8, bottom: 22 };

const PLOT = {
  left: CHART.left,
  right: CHART.width - CHART.right,
  top: CHART.top,
  bottom: CHART.height - CHART.bottom,
};

/** From 0 to at least `most`, in round steps. */
function upwardScale(most: number): ScaleLinear<number, number> {
  return scaleLinear().domain([0, most]).nice(4).range([PLOT.bottom, PLOT.top]);
}

/** A chart with its axes; what it says stands in `label` and, in numbers, in the table behind it. */
function chartFigure(chart: {
  label: string;
  legend: Child;
  y: ScaleLinear<number, number>;
  steps: readonly { at: Date; x: number }[];
  marks: Child;
  table: Child;
  yText: (value: number) => string;
}): Markup {
  const lines = chart.y.ticks(4).map((value) => {
    const y = chart.y(value).toFixed(1);
    return html`<line class="grid" x1="${PLOT.left}" x2="${PLOT.right}" y1="${y}" y2="${y}"/><text class="tick y" x="${PLOT.left - 7}" y="${y}">${chart.yText(value)}</text>`;
  });
  const labels = chart.steps
    .filter((_, index) => index % 4 === chart.steps.length % 4)
    .map(
      ({ at, x }) =>
        html`<text class="tick x" x="${x.toFixed(1)}" y="${CHART.height - 5}">${clockText(at)}</text>`,
    );
  return html`<figure class="chart"><svg viewBox="0 0 ${CHART.width} ${CHART.height}" role="img" aria-label="${chart.label}">${lines}${chart.marks}${labels}</svg>
<figcaption><p class="legend">${chart.legend}</p>
<details><summary>In numbers</summary>${chart.table}</details></figcaption></figure>`;
}

/** `14:00`, in UTC. */
function clockText(at: Date): string {
  return at.toISOString().slice(11, 16);
}

/** `hour`, `15 minutes`: how long a step is. */
function stepText({ stepMinutes }: ChartSpan): string {
  return stepMinutes === 60 ? 'hour' : `${stepMinutes} minutes`;
}

/** `the last 24 hours`, `the last hour`: what a chart is about. */
function spanText({ steps, stepMinutes }: ChartSpan): string {
  const hours = Math.round((steps * stepMinutes) / 60);
  return hours === 1 ? 'the last hour' : `the last ${hours} hours`;
}
