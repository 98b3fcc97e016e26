import type { Viewer } from '../../src/api/portal/access/viewer.ts';
import { csrfField } from '../../src/api/portal/components/form.ts';
import { html, type Markup, nothing } from '../../src/api/portal/markup.ts';
import { shortText } from './chat-text.ts';
import { type ConsoleChoice, consolePath } from './console-choice.ts';
import { icon } from './icons.ts';
import { consoleAssetUrl, SAMPLE_FILES, SAMPLE_PICTURES } from './sample-files.ts';
import type { ChatEntry } from './sandbox-client.ts';

/** The hidden fields of every form of the console. */
export function choiceFields(viewer: Pick<Viewer, 'csrfToken'>, { number, customer }: ConsoleChoice): Markup {
  return html`${csrfField(viewer)}<input type="hidden" name="number" value="${number.phoneNumberId}"><input type="hidden" name="customer" value="${customer.waId}">`;
}

/** Where the customer writes, and everything that can be sent besides words. */
export function composer(viewer: Viewer, choice: ConsoleChoice, replyTo: ChatEntry | undefined): Markup {
  return html`<form id="tap" method="post" action="/portal/sandbox/taps" data-console>${choiceFields(viewer, choice)}</form>
<div class="composer">
<details class="attach"><summary aria-label="Attach" title="Photo, voice, location, cart, payment …">${icon('plus')}</summary>${attachments(viewer, choice)}</details>
<form class="write" method="post" action="/portal/sandbox/messages" data-console>
${choiceFields(viewer, choice)}
<div class="replying" id="replying" ${replyTo === undefined && html`hidden`}><input type="hidden" name="replyTo" value="${replyTo?.n ?? ''}"><span>Reply to: <q>${replyTo === undefined ? '' : shortText(replyTo)}</q></span> <a href="${consolePath(choice)}" data-no-reply aria-label="Do not reply">✕</a></div>
<label class="unseen" for="message">Message of ${choice.customer.name}</label>
<input type="text" id="message" name="text" maxlength="4096" autocomplete="off" placeholder="Message" required ${replyTo !== undefined && html`autofocus`}>
<button class="send" name="kind" value="text" aria-label="Send" title="Send">${icon('send')}</button>
</form>
</div>`;
}

/** In its place for viewers who may not write. */
export function noComposer(): Markup {
  return html`<p class="composer looking-on">You can only watch: sending needs an administrator or operator.</p>`;
}

const NUMBERS_WITH_PAYMENTS = '91';

function attachments(viewer: Viewer, choice: ConsoleChoice): Markup {
  const { number } = choice;
  const isIndian = number.displayPhoneNumber.replace(/\D/g, '').startsWith(NUMBERS_WITH_PAYMENTS);
  return html`<form class="attachments" method="post" enctype="multipart/form-data" action="/portal/sandbox/messages" data-console>
${choiceFields(viewer, choice)}
<p class="attach-title">Your own file</p>
<div class="own-file"><label class="unseen" for="file">Your own file</label><input type="file" id="file" name="file"><button name="kind" value="file">Send</button></div>
<label class="unseen" for="caption">Caption</label><input type="text" id="caption" name="text" maxlength="1024" placeholder="Caption (optional)" autocomplete="off">
<p class="attach-title">Photo</p>
<div class="pictures">${SAMPLE_PICTURES.map(
    ({ asset, label }) =>
      html`<button name="kind" value="sample ${asset}" title="${label}"><img src="${consoleAssetUrl(asset)}" alt="Send the photo ${label}" width="72" height="54"></button>`,
  )}</div>
<p class="attach-title">Something else</p>
<div class="attach-buttons">${SAMPLE_FILES.map(
    ({ asset, label, sign }) =>
      html`<button name="kind" value="sample ${asset}">${icon(sign)} ${label}</button>`,
  )}<button name="kind" value="location">${icon('place')} Location</button><button name="kind" value="contacts">${icon('person')} Contact</button><button name="kind" value="order">${icon('cart')} Cart</button></div>
<p class="attach-title">${icon('card')} Payment</p>
<div class="attach-buttons"><button name="kind" value="payment pending">Pending</button><button name="kind" value="payment captured">Captured</button><button name="kind" value="payment refund">Refund</button></div>
${isIndian ? nothing : html`<p class="hint">The real platform has payments for Indian numbers only. The sandbox has them for all.</p>`}
</form>`;
}
