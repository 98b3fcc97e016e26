import { type ScaleLinear, scaleLinear } from 'd3-scale';
import type { ChartSpan } from '../../../deliveries/search/tenant-overview.ts';
import { type Child, html, type Markup } from '../markup.ts';

/** The room of a chart, in units of its view box. */
const CHART = { width: 480, height: 190, left: 54, right: 6, top: 8, bottom: 22 };

export const PLOT = {
  left: CHART.left,
  right: CHART.width - CHART.right,
  top: CHART.top,
  bottom: CHART.height - CHART.bottom,
};

/** From 0 to at least `most`, in round steps. */
export function upwardScale(most: number): ScaleLinear<number, number> {
  return scaleLinear().domain([0, most]).nice(4).range([PLOT.bottom, PLOT.top]);
}

/** A chart with its axes; what it says stands in `label` and, in numbers, in the table behind it. */
export function chartFigure(chart: {
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
export function clockText(at: Date): string {
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
