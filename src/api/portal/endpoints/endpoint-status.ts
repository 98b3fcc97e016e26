import { shownCount } from '../../../accounts/shown-count.ts';
import type { EndpointActivity } from '../../../database/endpoint-activity.ts';
import type { WaitingDeliveries } from '../../../deliveries/queue/read-waiting.ts';
import type { Endpoint } from '../../../endpoints/store.ts';
import { badge } from '../components/badge.ts';
import { durationText } from '../components/time.ts';
import { html, type Markup } from '../markup.ts';

type Status = Pick<Endpoint, 'mode' | 'failingSince'>;

/** Whether an endpoint takes deliveries, in a word. */
export function modeBadge({ mode, failingSince }: Status): Markup {
  if (mode === 'paused') return badge('off', 'Paused');
  if (mode === 'disabled') return badge('bad', 'Disabled');
  if (mode === 'probing') return badge('bad', 'Probing');
  return failingSince === null ? badge('good', 'Open') : badge('waiting', 'Failing');
}

/** What a mode means for what waits. */
export function modeSentence({ mode, failingSince }: Status): string {
  if (mode === 'paused') return 'Paused: events wait and are kept. Nothing is sent until it is enabled.';
  if (mode === 'disabled')
    return 'Switched off: events wait and are kept. Nothing is sent until it is enabled.';
  if (mode === 'probing') {
    return 'It mostly failed, so events wait. One attempt at a time asks whether it is back; it then goes on by itself.';
  }
  return failingSince === null
    ? 'Events are sent as they come.'
    : 'The latest attempts failed. Each event is tried again by the retry schedule.';
}

/** `12 · oldest 4 min`, or a dash. */
export function waitingText(waiting: WaitingDeliveries): Markup {
  if (waiting.count === 0) return html`<span class="faint">–</span>`;
  const age = waiting.oldestMs === null ? null : durationText(waiting.oldestMs);
  return html`${shownCount(waiting)}${age !== null && html` <span class="faint">oldest ${age}</span>`}`;
}

/** `99.8 %` of the attempts of the last 24 hours; null without any. */
export function successRate({
  successes,
  failures,
}: Pick<EndpointActivity, 'successes' | 'failures'>): string | null {
  const attempts = successes + failures;
  if (attempts === 0) return null;
  const percent = (successes / attempts) * 100;
  // 99.96 must not read as if nothing had failed.
  const shown = failures > 0 ? Math.min(percent, 99.9) : percent;
  return `${shown === 100 || shown === 0 ? shown : shown.toFixed(1)} %`;
}
