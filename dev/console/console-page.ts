import type { Viewer } from '../../src/api/portal/access/viewer.ts';
import { badge } from '../../src/api/portal/components/badge.ts';
import { codeBlock } from '../../src/api/portal/components/copyable.ts';
import type { Notice } from '../../src/api/portal/components/notice.ts';
import { emptyState } from '../../src/api/portal/components/table.ts';
import { durationText } from '../../src/api/portal/components/time.ts';
import { html, type Markup, nothing } from '../../src/api/portal/markup.ts';
import type { PageView } from '../../src/api/portal/page.ts';
import { chatThread } from './chat-thread.ts';
import { choiceFields, composer, noComposer } from './composer.ts';
import { type ConsoleChoice, mayPlay } from './console-choice.ts';
import type { ConsoleState, ShownWebhook } from './console-state.ts';
import { fieldForm } from './field-form.ts';
import { consoleAssetUrl } from './sample-files.ts';
import { answerButtons, burstButton, tenantControls, tenantSummary } from './tenant-controls.ts';

const FRAME = {
  title: 'Sandbox console',
  active: 'sandbox',
  assets: [consoleAssetUrl('sandbox.css'), consoleAssetUrl('sandbox.js')],
} as const;

type ConsoleView = {
  viewer: Viewer;
  state: ConsoleState;
  apiUrl: string;
  /** The message of the chat that is being answered. */
  replyNumber: number | null;
  notice: Notice | null;
};

/** The console: the phone on the left, what the sample tenant received on the right. */
export function consolePage({ viewer, state, apiUrl, replyNumber, notice }: ConsoleView): PageView {
  const { choice } = state;
  const live = new URLSearchParams({ number: choice.number.phoneNumberId, customer: choice.customer.waId });
  return {
    ...FRAME,
    viewer,
    notice,
    waba: choice.number,
    lead: 'Write as a customer on the phone, and watch the webhooks reach the sample tenant.',
    actions: chooser(choice),
    body: html`<div class="console" data-live-console="/portal/sandbox/live?${live.toString()}">
<section class="customer-side" aria-label="The customer’s phone">
${phoneView(viewer, state, replyNumber)}
${answerHelp(choice, apiUrl)}
</section>
<section class="tenant-side" aria-labelledby="received-title">
<div class="tenant-head"><h2 id="received-title">Webhooks of the sample tenant</h2><span class="live-sign" id="live-sign" role="status" hidden></span><noscript><a class="button" href="/portal/sandbox?${live.toString()}">Reload</a></noscript>${burstButton(viewer, state)}</div>
<div id="summary" data-part="summary">${tenantSummary(state)}</div>
${tenantControls(viewer, state)}
${fieldForm(viewer, state)}
<p class="console-problem" id="console-problem" role="alert" hidden></p>
<div class="received-box"><div class="received-head" aria-hidden="true"><span>Time</span><span>Event</span><span>Summary</span><span>Checks</span><span>Latency</span></div>
<ol class="received" id="received" data-part="received">${receivedList(state)}</ol></div>
</section>
</div>`,
  };
}

/** Without a number to write to. */
export function emptyConsolePage(viewer: Viewer): PageView {
  const text = 'The sandbox needs a phone number of a business. npm start creates some for the demo tenants.';
  return { ...FRAME, viewer, body: emptyState('No phone number here', text) };
}

/** The parts that change while one looks on, by the id of their place in the page. */
export function liveParts(viewer: Viewer, state: ConsoleState): Record<string, Markup> {
  return {
    thread: threadPart(viewer, state),
    summary: tenantSummary(state),
    answers: answerButtons(state),
    received: receivedList(state),
  };
}

function chooser({ number, numbers, customer, customers }: ConsoleChoice): Markup {
  const option = (value: string, label: string, chosen: boolean) =>
    html`<option value="${value}" ${chosen && html`selected`}>${label}</option>`;
  return html`<form class="chooser" method="get" action="/portal/sandbox">
<label>Customer <select name="customer" data-submit>${customers.map(({ waId, name }) => option(waId, `${name} (…${waId.slice(-4)})`, waId === customer.waId))}</select></label>
<label>writes to <select name="number" data-submit>${numbers.map((one) =>
    option(
      one.phoneNumberId,
      `${one.verifiedName || one.businessName} (…${one.displayPhoneNumber.slice(-4)})`,
      one.phoneNumberId === number.phoneNumberId,
    ),
  )}</select></label>
<button>Change</button></form>`;
}

/** How the business answers: with the API, as a real one does. */
function answerHelp({ number, customer }: ConsoleChoice, apiUrl: string): Markup {
  const command = (message: Record<string, unknown>) => {
    const body = { phoneNumberId: number.phoneNumberId, to: customer.waId, ...message };
    return `curl ${apiUrl}/api/external/messages \\
  -H "Authorization: Bearer $HELIOGRAPH_API_KEY" -H 'Content-Type: application/json' \\
  -d '${JSON.stringify(body)}'`;
  };
  const button = (id: string, title: string) => ({ type: 'reply', reply: { id, title } });
  const text = { type: 'text', text: { body: 'Yes, in all sizes.' } };
  const buttons = {
    type: 'interactive',
    interactive: {
      type: 'button',
      body: { text: 'Which size shall it be?' },
      action: { buttons: [button('s', 'Small'), button('m', 'Medium'), button('l', 'Large')] },
    },
  };
  return html`<details class="card answer-help"><summary>Reply as the business</summary>
<p>The business sends through the API. Its messages appear on the phone with their ticks, and you can tap their buttons. <code>npm start</code> prints the demo API key: put it into <code>HELIOGRAPH_API_KEY</code>.</p>
${codeBlock(command(text), 'Command that sends a text')}
${codeBlock(command(buttons), 'Command that sends buttons')}
</details>`;
}

/** The customer's phone: chat and composer. */
function phoneView(viewer: Viewer, state: ConsoleState, replyNumber: number | null): Markup {
  const { number } = state.choice;
  const canPlay = mayPlay(viewer);
  const replyTo = state.thread.find(({ n }) => n === replyNumber);
  return html`<div class="phone" id="phone">
<div class="screen">
<div class="chat-head"><span class="avatar" aria-hidden="true">${initials(number.verifiedName)}</span><span class="chat-with"><strong>${number.verifiedName || number.businessName}</strong><span>+${number.displayPhoneNumber.replace(/^\+/, '')}</span></span><span class="verified-sign" title="A business number">✓ business</span></div>
<div class="thread" id="thread-scroll" tabindex="0" role="region" aria-label="Chat of ${state.choice.customer.name}"><ol id="thread" data-part="thread">${threadPart(viewer, state)}</ol></div>
${canPlay ? composer(viewer, state.choice, replyTo) : noComposer()}
</div>
</div>`;
}

/** The items of the chat, or how to begin. */
function threadPart(viewer: Viewer, { thread, choice }: ConsoleState): Markup {
  const canPlay = mayPlay(viewer);
  if (thread.length > 0) return chatThread({ thread, choice, canPlay });
  return html`<li class="beginning" data-key="beginning"><p><strong>You are ${choice.customer.name}.</strong> Write to ${choice.number.businessName}, or start with one tap:</p>
${canPlay && starters(viewer, choice)}</li>`;
}

function starters(viewer: Viewer, choice: ConsoleState['choice']): Markup {
  return html`<form method="post" action="/portal/sandbox/messages" data-console class="starters">${choiceFields(viewer, choice)}
<button name="kind" value="hello">“Hello!”</button><button name="kind" value="sample sandbox-shoe.jpg">A photo</button><button name="kind" value="order">A cart</button></form>`;
}

function initials(name: string): string {
  const words = name.split(/\s+/).filter((word) => /^\p{L}/u.test(word));
  return words
    .slice(0, 2)
    .map((word) => [...word][0]?.toUpperCase())
    .join('');
}

/** The webhooks of the sample tenant, the newest first; or what to do to get one. */
function receivedList({ webhooks, counts }: ConsoleState): Markup {
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
