import { html, type Markup, nothing } from '../../src/api/portal/markup.ts';
import { listOf, membersOf, textOf } from '../../src/platform/json/json-members.ts';
import { choicesOf, contentOf, moneyText, shortText, typeOf } from './chat-text.ts';
import { type ConsoleChoice, consolePath } from './console-choice.ts';
import { type IconName, icon } from './icons.ts';
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

/** What a message shows in its bubble. Only phrasing content: it stands in a summary. */
function chatContent(entry: ChatEntry, choice: ConsoleChoice): Markup {
  const content = contentOf(entry);
  switch (typeOf(entry)) {
    case 'text':
      return html`<span class="words">${textOf(content.body)}</span>`;
    case 'image':
    case 'sticker':
      return picture(entry, choice);
    case 'audio':
      return fileLine('voice', 'Voice message');
    case 'video':
      return withCaption(fileLine('film', 'Video'), content.caption);
    case 'document':
      return withCaption(fileLine('file', textOf(content.filename) || 'Document'), content.caption);
    case 'location':
      return withCaption(fileLine('place', textOf(content.name) || 'Location'), coordinates(entry));
    case 'contacts':
      return html`${listOf(entry.message.contacts).map(contactCard)}`;
    case 'order':
      return cart(content.product_items, textOf(content.text));
    case 'interactive':
      return interactive(content);
    case 'button':
      return html`<span class="words">${textOf(content.text)}</span>`;
    case 'template':
      return withCaption(fileLine('blocks', `Template ${textOf(content.name)}`), templateWords(content));
    case 'reaction':
      // To a message that the chat no longer shows.
      return html`<span class="words">${textOf(content.emoji) || 'Reaction taken back'}</span>`;
    default:
      return html`<span class="words faint">${typeOf(entry).replaceAll('_', ' ')}</span>`;
  }
}

/** Where the bytes of a medium are, for those that the sandbox holds. */
function mediaPath(entry: ChatEntry, { number }: ConsoleChoice): string | null {
  const id = textOf(contentOf(entry).id);
  if (id === '') return null;
  return `/portal/sandbox/media/${encodeURIComponent(id)}?${new URLSearchParams({ number: number.phoneNumberId })}`;
}

function picture(entry: ChatEntry, choice: ConsoleChoice): Markup {
  const content = contentOf(entry);
  const src = mediaPath(entry, choice);
  const isSticker = typeOf(entry) === 'sticker';
  const words = isSticker ? 'Sticker' : textOf(content.caption) || 'Photo';
  // A page of ours loads nothing from elsewhere: of a picture by link the address is shown.
  if (src === null)
    return withCaption(fileLine('picture', textOf(content.link) || 'Picture'), content.caption);
  const size = isSticker ? html`width="132" height="132"` : html`width="240" height="180"`;
  return withCaption(
    html`<img class="${isSticker ? 'sticker' : 'photo'}" src="${src}" alt="${words}" ${size}>`,
    content.caption,
  );
}

function withCaption(above: Markup, caption: unknown): Markup {
  const words = textOf(caption);
  return words === '' ? above : html`${above}<span class="words">${words}</span>`;
}

function fileLine(sign: IconName, name: string): Markup {
  return html`<span class="file">${icon(sign)}<span class="file-name">${name}</span></span>`;
}

function coordinates(entry: ChatEntry): string {
  const { address, latitude, longitude } = contentOf(entry);
  return textOf(address) || [latitude, longitude].map(textOf).join(', ');
}

function contactCard(contact: Readonly<Record<string, unknown>>): Markup {
  const name = textOf(membersOf(contact.name).formatted_name) || 'Contact';
  const phone = textOf(listOf(contact.phones)[0]?.phone);
  return withCaption(fileLine('person', name), phone);
}

function cart(items: unknown, note: string): Markup {
  const lines = listOf(items);
  const total = lines.reduce((sum, line) => sum + Number(line.item_price) * Number(line.quantity), 0);
  return html`<span class="cart"><strong>${icon('cart')} ${lines.length} ${lines.length === 1 ? 'item' : 'items'}</strong>${lines.map(
    (line) =>
      html`<span class="cart-line"><span>${textOf(line.quantity)} × ${textOf(line.product_retailer_id)}</span><span>${priceText(line.item_price)}</span></span>`,
  )}<span class="cart-line total"><span>Total</span><span>${Number.isFinite(total) ? total.toFixed(2) : ''} ${textOf(lines[0]?.currency)}</span></span></span>${note !== '' && html`<span class="words">${note}</span>`}`;
}

function priceText(price: unknown): string {
  return typeof price === 'number' ? price.toFixed(2) : textOf(price);
}

/** Of the business: header, words, footer. Of the customer: what was chosen. */
function interactive(content: Readonly<Record<string, unknown>>): Markup {
  const kind = textOf(content.type);
  const reply = membersOf(content[kind]);
  if (kind === 'nfm_reply') return fileLine('form', textOf(reply.body) || 'Form filled in');
  if (kind.endsWith('_reply'))
    return withCaption(html`<span class="words">${textOf(reply.title)}</span>`, reply.description);
  const parts = [
    [membersOf(content.header).text, 'bubble-head'],
    [membersOf(content.body).text, 'words'],
    [orderTotal(content), 'bubble-head'],
    [membersOf(content.footer).text, 'bubble-foot'],
  ].map(([text, name]) => [textOf(text), textOf(name)] as const);
  return html`${parts.map(([text, name]) => (text === '' ? nothing : html`<span class="${name}">${text}</span>`))}`;
}

function orderTotal(content: Readonly<Record<string, unknown>>): string {
  const parameters = membersOf(membersOf(content.action).parameters);
  const total = moneyText(parameters.total_amount, parameters.currency);
  return total === '' ? '' : `To pay: ${total}`;
}

function templateWords(content: Readonly<Record<string, unknown>>): string {
  return listOf(content.components)
    .flatMap(({ parameters }) => listOf(parameters))
    .map(({ text }) => textOf(text))
    .filter((text) => text !== '')
    .join(' · ');
}
