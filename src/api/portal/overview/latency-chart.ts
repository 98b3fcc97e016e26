import { scalePoint } from 'd3-scale';
import { line } from 'd3-shape';
import type { ChartSpan, LatencyStep } from '../../../deliveries/search/tenant-overview.ts';
import { dataTable } from '../components/table.ts';
import { durationText } from '../components/time.ts';
import { html, type Markup } from '../markup.ts';
import { chartFigure, clockText, PLOT, spanText, stepText, upwardScale } from './chart-frame.ts';

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
    steps: steps.map((hour, index) => ({ at: hour.at, x: at(index) })),
    marks: html`<path class="line-median" d="${pathOf('p50Ms')}"/><path class="line-p95" d="${pathOf('p95Ms')}"/>${dots}`,
    table: dataTable(
      `Delivery latency per ${stepText(span)}`,
      [{ label: 'From (UTC)' }, { label: 'p50', kind: 'number' }, { label: 'p95', kind: 'number' }],
      steps.map((hour) => [clockText(hour.at), text(hour.p50Ms), text(hour.p95Ms)]),
    ),
    yText: durationText,
  });
}

function text(ms: number | null): string {
  return ms === null ? '–' : durationText(ms);
}
