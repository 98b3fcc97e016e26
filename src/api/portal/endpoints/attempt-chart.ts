import { html, type Markup } from '../markup.ts';

type Step = { at: Date; successes: number; failures: number };

const WIDTH = 720;
const UP = 72;
const DOWN = 36;
const GAP = 2;

/**
 * Attempts hour by hour: successes up, failures down from the line, so that neither needs its colour. What the bars
 * say is in their titles, and in numbers beside the chart.
 */
export function attemptChart(steps: readonly Step[]): Markup {
  const most = Math.max(1, ...steps.map(({ successes }) => successes));
  const mostFailures = Math.max(1, ...steps.map(({ failures }) => failures));
  const width = WIDTH / Math.max(1, steps.length);
  const bars = steps.map((step, at) => {
    const up = heightOf(step.successes, most, UP);
    const down = heightOf(step.failures, Math.max(mostFailures, most / 2), DOWN);
    const x = (at * width + GAP / 2).toFixed(1);
    const barWidth = (width - GAP).toFixed(1);
    return html`<g><title>${hourOf(step.at)} UTC: ${step.successes} succeeded, ${step.failures} failed</title>
<rect class="hour" x="${x}" y="0" width="${barWidth}" height="${UP + DOWN}"/>
<rect class="success" x="${x}" y="${(UP - up).toFixed(1)}" width="${barWidth}" height="${up.toFixed(1)}"/>
<rect class="failure" x="${x}" y="${UP + 1}" width="${barWidth}" height="${down.toFixed(1)}"/></g>`;
  });
  const total = (key: 'successes' | 'failures') => steps.reduce((sum, step) => sum + step[key], 0);
  const label = `Attempts of the last ${steps.length} hours: ${total('successes')} succeeded, ${total('failures')} failed`;
  return html`<figure class="attempt-chart"><svg viewBox="0 0 ${WIDTH} ${UP + DOWN + 2}" role="img" aria-label="${label}" preserveAspectRatio="none">${bars}<line class="axis" x1="0" x2="${WIDTH}" y1="${UP + 0.5}" y2="${UP + 0.5}"/></svg>
<figcaption><span>${hourOf(steps[0]?.at)}</span><span>succeeded above the line, failed below</span><span>now</span></figcaption></figure>`;
}

/** What there is of something shows, however little beside the most. */
function heightOf(value: number, most: number, height: number): number {
  return value === 0 ? 0 : Math.max(2, (value / most) * height);
}

function hourOf(at: Date | undefined): string {
  return at === undefined ? '' : at.toISOString().slice(11, 16);
}
