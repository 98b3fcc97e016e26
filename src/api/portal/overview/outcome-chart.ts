import { scaleBand } from 'd3-scale';
import type { HourOfOutcomes } from '../../../database/tenant-overview.ts';
import { dataTable } from '../components/table.ts';
import { html, type Markup } from '../markup.ts';
import { chartFigure, hourText, PLOT, upwardScale } from './chart-frame.ts';

/** Attempts per hour: the hatched part of a bar failed. */
export function outcomeChart(hours: readonly HourOfOutcomes[]): Markup {
  const x = scaleBand<number>()
    .domain(hours.map((_, index) => index))
    .range([PLOT.left, PLOT.right])
    .padding(0.18);
  const y = upwardScale(Math.max(4, ...hours.map(({ successes, failures }) => successes + failures)));
  const bars = hours.map(({ at, successes, failures }, index) => {
    const left = (x(index) ?? 0).toFixed(1);
    const width = x.bandwidth().toFixed(1);
    const bar = (className: string, from: number, to: number) =>
      to > from &&
      html`<rect class="${className}" x="${left}" width="${width}" y="${y(to).toFixed(1)}" height="${(y(from) - y(to)).toFixed(1)}"/>`;
    return html`<g><title>${hourText(at)} UTC: ${successes} succeeded, ${failures} failed</title>${bar('bar-good', 0, successes)}${bar('bar-bad', successes, successes + failures)}${bar('bar-hatch', successes, successes + failures)}</g>`;
  });
  return chartFigure({
    label: `Attempts per hour of the last 24 hours: ${sum(hours, 'successes')} succeeded, ${sum(hours, 'failures')} failed`,
    legend: html`<span class="key key-good"></span> succeeded <span class="key key-bad"></span> failed (hatched) · hours in UTC`,
    y,
    hours: hours.map(({ at }, index) => ({ at, x: (x(index) ?? 0) + x.bandwidth() / 2 })),
    marks: html`<defs><pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line class="hatch" x1="0" x2="0" y1="0" y2="5"/></pattern></defs>${bars}`,
    table: dataTable(
      'Attempts per hour',
      [{ label: 'Hour (UTC)' }, { label: 'Succeeded', kind: 'number' }, { label: 'Failed', kind: 'number' }],
      hours.map((hour) => [hourText(hour.at), hour.successes, hour.failures]),
    ),
    yText: (value) => value.toLocaleString('en-US'),
  });
}

function sum(hours: readonly HourOfOutcomes[], key: 'successes' | 'failures'): string {
  return hours.reduce((total, hour) => total + hour[key], 0).toLocaleString('en-US');
}
