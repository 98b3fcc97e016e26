import { scaleBand } from 'd3-scale';
import type { ChartSpan, OutcomeStep } from '../../../deliveries/search/tenant-overview.ts';
import { dataTable } from '../components/table.ts';
import { html, type Markup } from '../markup.ts';
import { chartFigure, clockText, PLOT, spanText, stepText, upwardScale } from './chart-frame.ts';

/** Attempts per step: the hatched part of a bar failed. */
export function outcomeChart(steps: readonly OutcomeStep[], span: ChartSpan): Markup {
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
      [{ label: 'From (UTC)' }, { label: 'Succeeded', kind: 'number' }, { label: 'Failed', kind: 'number' }],
      steps.map((hour) => [clockText(hour.at), hour.successes, hour.failures]),
    ),
    yText: (value) => value.toLocaleString('en-US'),
  });
}

function sum(steps: readonly OutcomeStep[], key: 'successes' | 'failures'): string {
  return steps.reduce((total, hour) => total + hour[key], 0).toLocaleString('en-US');
}
