import { html, type Markup, nothing } from '../../api/portal/markup.ts';
import { membersOf, textOf } from '../../platform/json/json-members.ts';
import { chatContent, mediaPath } from './chat-content.ts';
import { choicesOf, contentOf, moneyText, shortText, typeOf } from './chat-text.ts';
import { type ConsoleChoice, consolePath } from './console-choice.ts';
import { icon } from './icons.ts';
import type { ChatEntry } from './sandbox-client.ts';

/** With what customers answer a message in one tap. */
export const EMOJIS = ['👍', '❤️', '😂', '😮', '🙏'] as const;

type ThreadView = { thread: readonly ChatEntry[]; choice: ConsoleChoice; canPlay: boolean };

/** The items of the chat, the oldest first. Reactions stand at the message that they are about. */
export function chatThread(view: ThreadView): Markup {
  const byId = new Map(view.thread.map((entry) => [entry.id, entry]));
  const shown = view.thread.filter((entry) => reactionTarget(entry, byId) === undefined);
  const reactions = Map.groupBy(
    view.thread.filter((entry) => reactionTarget(entry, byId) !== undefined),
    (entry) => reactionTarget(entry, byId),
  );
  return html`${shown.map((entry) =>
    typeOf(entry) === 'payment'
      ? paymentLine(entry)
      : bubble(entry, view, {
          quoted: byId.get(textOf(membersOf(entry.message.context).id)),
          emojis: emojisOf(reactions.get(entry) ?? []),
        }),
  )}`;
}

function reactionTarget(entry: ChatEntry, byId: ReadonlyMap<string, ChatEntry>): ChatEntry | undefined {
  return typeOf(entry) === 'reaction' ? byId.get(textOf(contentOf(entry).message_id)) : undefined;
}

/** Each side has one reaction to a message: its last; none takes it back. */
function emojisOf(reactions: readonly ChatEntry[]): string[] {
  const bySide = new Map(reactions.map((entry) => [entry.side, textOf(contentOf(entry).emoji)]));
  return [...bySide.values()].filter((emoji) => emoji !== '');
}

type BubbleParts = { quoted: ChatEntry | undefined; emojis: readonly string[] };

function bubble(entry: ChatEntry, { choice, canPlay }: ThreadView, { quoted, emojis }: BubbleParts): Markup {
  const content = html`${quoted !== undefined && html`<span class="quote">${shortText(quoted)}</span>`}${chatContent(entry, choice)}${meta(entry)}`;
  const name = typeOf(entry) === 'sticker' ? 'bubble bare' : 'bubble';
  return html`<li class="line ${entry.side}" data-key="chat-${entry.n}"><div class="${name}">${
    canPlay
      ? html`<details class="tap"><summary title="React or reply">${content}</summary>${tapMenu(entry, choice)}</details>`
      : html`<div class="untapped">${content}</div>`
  }${player(entry, choice)}</div>${emojis.length > 0 && html`<span class="reactions"><span class="unseen">Reactions:</span>${emojis.join('')}</span>`}${canPlay && choices(entry)}</li>
`;
}

/** What a tap on a message offers. */
function tapMenu(entry: ChatEntry, choice: ConsoleChoice): Markup {
  const reply = consolePath(choice, `&reply=${entry.n}#message`);
  return html`<div class="tap-menu" role="group" aria-label="React">${EMOJIS.map(
    (emoji) => html`<button form="tap" name="tap" value="react ${entry.n} ${emoji}">${emoji}</button>`,
  )}<a class="button" href="${reply}" data-reply="${entry.n}" data-words="${shortText(entry).slice(0, 40)}">Reply</a></div>`;
}

function choices(entry: ChatEntry): Markup {
  const offered = entry.side === 'business' ? choicesOf(entry) : [];
  if (offered.length === 0) return nothing;
  return html`<span class="choices">${offered.map(
    ({ title, description }, at) =>
      html`<button form="tap" name="tap" value="choose ${entry.n} ${at}" title="${description}">${title}</button>`,
  )}</span>`;
}

function player(entry: ChatEntry, choice: ConsoleChoice): Markup {
  const path = mediaPath(entry, choice);
  const type = typeOf(entry);
  if (path === null) return nothing;
  if (type === 'audio')
    return html`<audio controls preload="none" src="${path}" aria-label="Voice message"></audio>`;
  return type === 'document' ? html`<a class="download" href="${path}" download>Open the file</a>` : nothing;
}

const TICKS: Readonly<Record<string, string>> = {
  sent: '✓',
  delivered: '✓✓',
  read: '✓✓',
  played: '✓✓',
  accepted: '…',
  sending: '…',
};

function meta(entry: ChatEntry): Markup {
  const state = entry.states.at(-1)?.state ?? '';
  const sign = TICKS[state] ?? '!';
  return html` <span class="meta"><time datetime="${entry.at}" data-clock>${entry.at.slice(11, 16)}</time> <span class="ticks ${state}">${state} <span aria-hidden="true">${sign}</span></span></span>`;
}

function paymentLine(entry: ChatEntry): Markup {
  const payment = membersOf(entry.message.payment);
  const refunds = Array.isArray(payment.refunds) ? ' · refund' : '';
  const text = `${moneyText(payment.amount, payment.currency)} · ${textOf(entry.message.status)}${refunds} · ${entry.id}`;
  return html`<li class="line event" data-key="chat-${entry.n}"><span class="pill">${icon('card')} Payment ${text}</span></li>
`;
}
