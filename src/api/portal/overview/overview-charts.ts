import { type ScaleLinear, scaleBand, scaleLinear, scalePoint } from 'd3-scale';
import { line } from 'd3-shape';
import type { ChartSpan, LatencyStep, OutcomeStep } from '../../../features/delivery-log/tenant-overview.ts';
import { dataTable } from '../components/table.ts';
import { durationText } from '../components/time.ts';
import { type Child, html, type Markup } from '../markup.ts';

/** Attempts per step: the hatched part of a bar failed. */
export function outcomeChart(steps: readonly OutcomeStep[], span: ChartSpan): Markup {
  return barChart(
    steps.map(({ at, successes, failures }) => ({ name: clockText(at), good: successes, bad: failures })),
    {
      label: `Attempts per ${stepText(span)} of ${spanText(span)}`,
      caption: `Attempts per ${stepText(span)}`,
      names: ['From (UTC)', 'Succeeded', 'Failed'],
    },
  );
}

type Bar = { name: string; good: number; bad: number };

/** `names`: of the steps, of what is good, and of what is bad and hatched; times and days are in UTC. */
export function barChart(
  steps: readonly Bar[],
  { label, caption, names }: { label: string; caption: string; names: readonly [string, string, string] },
): Markup {
  const [stepName, goodName, badName] = names;
  const [good, bad] = [goodName.toLowerCase(), badName.toLowerCase()];
  const x = scaleBand<number>()
    .domain(steps.map((_, index) => index))
    .range([PLOT.left, PLOT.right])
    .padding(0.18);
  const y = upwardScale(Math.max(4, ...steps.map((step) => step.good + step.bad)));
  const bars = steps.map((step, index) => {
    const left = (x(index) ?? 0).toFixed(1);
    const width = x.bandwidth().toFixed(1);
    const bar = (className: string, from: number, to: number) =>
      to > from &&
      html`<rect class="${className}" x="${left}" width="${width}" y="${y(to).toFixed(1)}" height="${(y(from) - y(to)).toFixed(1)}"/>`;
    const top = step.good + step.bad;
    return html`<g><title>${step.name} UTC: ${step.good} ${good}, ${step.bad} ${bad}</title>${bar('bar-good', 0, step.good)}${bar('bar-bad', step.good, top)}${bar('bar-hatch', step.good, top)}</g>`;
  });
  return chartFigure({
    label: `${label}: ${sum(steps, 'good')} ${good}, ${sum(steps, 'bad')} ${bad}`,
    legend: html`<span class="key key-good"></span> ${good} <span class="key key-bad"></span> ${bad} (hatched) · times in UTC`,
    y,
    steps: steps.map(({ name }, index) => ({ name, x: (x(index) ?? 0) + x.bandwidth() / 2 })),
    marks: html`<defs><pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line class="hatch" x1="0" x2="0" y1="0" y2="5"/></pattern></defs>${bars}`,
    table: dataTable(
      caption,
      [stepName, { label: goodName, kind: 'number' }, { label: badName, kind: 'number' }],
      steps.map((step) => [step.name, step.good, step.bad]),
    ),
    yText: (value) => value.toLocaleString('en-US'),
  });
}

function sum(steps: readonly Bar[], key: 'good' | 'bad'): string {
  return steps.reduce((total, step) => total + step[key], 0).toLocaleString('en-US');
}

/** From an event's storing to its delivery: the median as a full line, the 95th percentile as a broken one. */
export function latencyChart(steps: readonly LatencyStep[], span: ChartSpan): Markup {
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
    steps: steps.map((hour, index) => ({ name: clockText(hour.at), x: at(index) })),
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
  steps: readonly { name: string; x: number }[];
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
      ({ name, x }) => html`<text class="tick x" x="${x.toFixed(1)}" y="${CHART.height - 5}">${name}</text>`,
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
export function stepText({ stepMinutes }: ChartSpan): string {
  return stepMinutes === 60 ? 'hour' : `${stepMinutes} minutes`;
}

/** `the last 24 hours`, `the last hour`: what a chart is about. */
export function spanText({ steps, stepMinutes }: ChartSpan): string {
  const hours = Math.round((steps * stepMinutes) / 60);
  return hours === 1 ? 'the last hour' : `the last ${hours} hours`;
}
