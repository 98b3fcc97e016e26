import type { Viewer } from '../../api/portal/access/viewer.ts';
import { emptyState } from '../../api/portal/components/empty-state.ts';
import type { Notice } from '../../api/portal/components/notice.ts';
import { html, type Markup } from '../../api/portal/markup.ts';
import type { PageView } from '../../api/portal/page.ts';
import { answerHelp } from './answer-help.ts';
import type { ConsoleChoice } from './console-choice.ts';
import type { ConsoleState } from './console-state.ts';
import { phoneView, threadPart } from './phone-view.ts';
import { receivedList } from './received-list.ts';
import { answerButtons, burstButton, tenantControls, tenantSummary } from './tenant-controls.ts';

const FRAME = {
  title: 'Sandbox console',
  active: 'sandbox',
  assets: ['sandbox.css', 'sandbox.js'],
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
<p class="console-problem" id="console-problem" role="alert" hidden></p>
<div class="received-box"><div class="received-head" aria-hidden="true"><span>Time</span><span>Event</span><span>Summary</span><span>Checks</span><span>Latency</span></div>
<ol class="received" id="received" data-part="received">${receivedList(state)}</ol></div>
</section>
</div>`,
  };
}

/** For someone who has no number to write to. */
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
