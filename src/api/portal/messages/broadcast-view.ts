import type { BroadcastState } from '../../../features/messages/broadcasts/broadcast-store.ts';
import type { BroadcastView } from '../../../features/messages/broadcasts/broadcasts.ts';
import { badge } from '../components/badge.ts';
import { noticeBox } from '../components/notice.ts';
import { percentText } from '../components/percent.ts';
import { statRow } from '../components/table.ts';
import { html, type Markup } from '../markup.ts';

const BADGES: Readonly<Record<BroadcastState, Markup>> = {
  draft: badge('off', 'Draft'),
  scheduled: badge('waiting', 'Scheduled'),
  running: badge('waiting', 'Running'),
  paused: badge('off', 'Paused'),
  done: badge('good', 'Done'),
  cancelled: badge('off', 'Cancelled'),
};

export function broadcastBadge(state: BroadcastState): Markup {
  return BADGES[state];
}

export function number(value: number): string {
  return value.toLocaleString('en-US');
}

const SENTENCES: Readonly<Record<BroadcastState, string>> = {
  draft: 'Nothing is sent before you start it.',
  scheduled: 'It begins at its time.',
  running: `Its messages take at most ${percentText(70)} of the pace of their number.`,
  paused: 'Messages whose sending has not begun wait until you resume the broadcast.',
  done: 'Every recipient has had its turn.',
  cancelled: 'Messages whose sending had not begun were not sent.',
};

export function broadcastProgress({ state, recipients, pausedBecause, counts }: BroadcastView): Markup {
  const { pending, queued, accepted, delivered, read, failed, suppressed, failedByCode } = counts;
  const settled = recipients - pending - queued;
  const percent = recipients === 0 ? 0 : Math.floor((settled / recipients) * 100);
  const codes = Object.entries(failedByCode).map(([code, n]) => `${code}: ${number(n)}`);
  return html`${pausedBecause !== null && noticeBox({ kind: 'warning', text: `It paused itself: ${pausedBecause}` })}
<div class="card"><p>${broadcastBadge(state)} ${SENTENCES[state]}</p>
<p><progress max="${Math.max(1, recipients)}" value="${settled}" aria-label="Settled">${percentText(percent)}</progress> <strong>${percentText(percent)}</strong> of ${number(recipients)} recipients.</p></div>
${statRow([
  { label: 'Pending', value: number(pending + queued), tone: pending + queued > 0 && 'waiting' },
  { label: 'Accepted', value: number(accepted) },
  { label: 'Delivered', value: number(delivered), tone: delivered > 0 && 'good' },
  { label: 'Read', value: number(read), tone: read > 0 && 'good' },
  { label: 'Failed', value: number(failed), tone: failed > 0 && 'bad', note: codes.join(', ') },
  { label: 'Suppressed', value: number(suppressed) },
  { label: 'Unknown', value: number(counts.unknown) },
  { label: 'Cancelled', value: number(counts.cancelled) },
])}`;
}
