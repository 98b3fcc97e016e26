import type { ReplayOutcomes } from '../../../features/replays/replay-store.ts';
import type { ReplayView } from '../../../features/replays/replays.ts';
import { badge } from '../components/badge.ts';
import { percentText } from '../components/percent.ts';
import { statRow } from '../components/table.ts';
import { html, type Markup } from '../markup.ts';

const STATES = {
  running: badge('waiting', 'Running'),
  paused: badge('off', 'Paused'),
  done: badge('good', 'Done'),
  cancelled: badge('off', 'Cancelled'),
};

export function replayBadge(state: ReplayView['state']): Markup {
  return STATES[state];
}

export function selectionText({ selection }: ReplayView): string {
  const { deliveryIds, eventIds, endpointId, from, to, eventTypes, states } = selection;
  if (eventIds !== null) {
    return endpointId === null ? 'one event, by its id' : `one event, by its id, to endpoint ${endpointId}`;
  }
  if (deliveryIds !== null) {
    return deliveryIds.length === 1 ? 'one delivery, by its id' : `${deliveryIds.length} deliveries, by id`;
  }
  const parts = [
    states?.join(' or ') ?? false,
    eventTypes === null ? 'all event types' : eventTypes.join(', '),
    endpointId !== null && `of endpoint ${endpointId}`,
    from !== null && `from ${minuteOf(from)}`,
    to !== null && `up to ${minuteOf(to)}`,
  ];
  return parts.filter((part) => part !== false).join(', ');
}

function minuteOf(text: string): string {
  return `${text.slice(0, 16).replace('T', ' ')}`;
}

export function progressView(replay: ReplayView & { outcomes: ReplayOutcomes }): Markup {
  const { total, queued, skipped, outcomes, state } = replay;
  const settled = outcomes.delivered + outcomes.failed + outcomes.dropped;
  const through = queued + skipped;
  const isThrough = state === 'done' || state === 'cancelled';
  const percent = total === 0 ? 100 : Math.floor(((settled + skipped) / total) * 100);
  const isSending = state === 'done' && outcomes.pending > 0;
  return html`<div class="card"><p>${isSending ? badge('waiting', 'Sending') : replayBadge(state)} ${sentence(state, outcomes.pending)}</p>
<p><progress max="${Math.max(1, total)}" value="${Math.min(total, settled + skipped)}" aria-label="Settled">${percentText(percent)}</progress> <strong>${percentText(percent)}</strong> settled; ${shown(through)} of ${shown(total)} ${isThrough ? 'were' : 'are'} queued or skipped.</p></div>
${statRow([
  { label: 'Selected', value: shown(total) },
  {
    label: 'Delivered',
    value: shown(outcomes.delivered),
    tone: outcomes.delivered > 0 && 'good',
  },
  {
    label: 'Pending or retrying',
    value: shown(outcomes.pending),
    tone: outcomes.pending > 0 && 'waiting',
  },
  { label: 'Failed', value: shown(outcomes.failed), tone: outcomes.failed > 0 && 'bad' },
  { label: 'Dropped', value: shown(outcomes.dropped) },
  { label: 'Skipped', value: shown(skipped) },
])}`;
}

function sentence(state: ReplayView['state'], pending: number): string {
  switch (state) {
    case 'running':
      return 'Events are queued with a lower priority than new ones, and sent.';
    case 'paused':
      return 'Queueing has stopped, and queued events wait until you resume the replay.';
    case 'cancelled':
      return 'Pending deliveries were dropped.';
    case 'done':
      return pending > 0 ? 'All events are queued; some are still pending.' : 'All deliveries are settled.';
  }
}

function shown(number: number): string {
  return number.toLocaleString('en-US');
}
