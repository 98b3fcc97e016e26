import { badge } from '../../api/portal/components/badge.ts';
import { emptyState } from '../../api/portal/components/empty-state.ts';
import { durationText } from '../../api/portal/components/time.ts';
import { html, type Markup, nothing } from '../../api/portal/markup.ts';
import type { ConsoleState, ShownWebhook } from './console-state.ts';

/** The webhooks of the sample tenant, the newest first; or what to do to get one. */
export function receivedList({ webhooks, counts }: ConsoleState): Markup {
  if (webhooks.length === 0) {
    return html`<li class="none" data-key="none">${emptyState(
      'Nothing received yet',
      html`Send a message on the phone. A moment later its webhook appears here as your server would receive it, with its signature, sequence and workflow.`,
      html`<a class="button primary" href="#message">Write the first message</a>`,
    )}</li>`;
  }
  const older = counts.received - webhooks.length;
  return html`${webhooks.map(row)}${older > 0 && html`<li class="older" data-key="older">${older} older webhooks are not shown.</li>`}`;
}

function row(webhook: ShownWebhook): Markup {
  return html`<li data-key="webhook-${webhook.n}"><details class="webhook ${outcomeOf(webhook)}" data-load="/portal/sandbox/webhooks/${webhook.n}">
<summary><time datetime="${webhook.receivedAt}" data-clock="seconds">${webhook.receivedAt.slice(11, 19)}</time><span class="event-type ${cssName(webhook.eventType)}">${webhook.eventType}</span><span class="about"><span class="summary-text">${webhook.summary}</span>${nextAttempt(webhook)}</span><span class="marks">${marks(webhook)}</span><span class="took">${latency(webhook)}</span></summary>
<div class="webhook-facts load" aria-live="polite"><a class="button" href="/portal/sandbox/webhooks/${webhook.n}">Workflow, headers and body</a></div>
</details></li>
`;
}

/** Whether the sample tenant took it, for the line at its side; the words say it too. */
function outcomeOf({ verified, status, mode }: ShownWebhook): string {
  if (!verified) return 'bad';
  if (status === null) return mode === 'slow' ? 'waiting' : 'bad';
  return status < 300 ? 'good' : 'bad';
}

function cssName(eventType: string): string {
  return `type-${eventType.replaceAll('.', '-')}`;
}

function marks({ verified, status, mode, duplicate, attempt, headers }: ShownWebhook): Markup {
  return html`${verified ? badge('good', 'verified') : badge('bad', 'wrong signature')}${attempt > 1 && badge('waiting', `attempt ${attempt}`)}${duplicate && badge('neutral', 'duplicate')}${headers['x-service-replay'] === 'true' && badge('neutral', 'replay')}${verified && status !== 200 && answer(status, mode)}`;
}

function answer(status: number | null, mode: string | null): Markup {
  if (status !== null) return badge(status < 300 ? 'good' : 'bad', `returned ${status}`);
  if (mode === 'slow') return badge('waiting', 'responding');
  return badge('bad', mode === 'reset' ? 'connection cut' : 'no response');
}

function latency({ sinceTapMs }: ShownWebhook): Markup {
  if (sinceTapMs === null) return html`<span class="faint" title="Not sent from this phone">–</span>`;
  return html`<span title="from the tap to the receipt">${durationText(sinceTapMs)}</span>`;
}

/** What comes next for a delivery that the tenant did not take; of its attempts the last one says it. */
function nextAttempt({ outlook, isLatest, status }: ShownWebhook): Markup {
  if (outlook === null || !isLatest || (status !== null && status < 300)) return nothing;
  if (outlook.state === 'failed') return html`<span class="next">failed for good</span>`;
  if (outlook.nextAttemptAt === null) return html`<span class="next">waits for its next attempt</span>`;
  const at = outlook.nextAttemptAt.toISOString();
  return html`<span class="next">next attempt <time datetime="${at}" data-until>at ${at.slice(11, 19)}</time></span>`;
}
