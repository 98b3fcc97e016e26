import type { Viewer } from '../../api/portal/access/viewer.ts';
import { html, type Markup } from '../../api/portal/markup.ts';
import { chatThread } from './chat-thread.ts';
import { choiceFields, composer, noComposer } from './composer.ts';
import { mayPlay } from './console-choice.ts';
import type { ConsoleState } from './console-state.ts';

/** The customer's phone: chat and composer. */
export function phoneView(viewer: Viewer, state: ConsoleState, replyNumber: number | null): Markup {
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
export function threadPart(viewer: Viewer, { thread, choice }: ConsoleState): Markup {
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
