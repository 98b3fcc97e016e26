import { type Members, membersOf, textOf } from '../../../src/platform/json/json-members.ts';

function senderOf(data: Members): string {
  const [contact] = Array.isArray(data.contacts) ? data.contacts : [];
  const name = textOf(membersOf(membersOf(contact).profile).name);
  const from = textOf(membersOf(data.message).from) || textOf(membersOf(contact).wa_id);
  const who = [name, from && `(${from})`].filter((part) => part !== '').join(' ');
  return who === '' ? '' : ` from ${who}`;
}

function messageText(message: Members): string {
  const type = textOf(message.type);
  const content = membersOf(message[type]);
  const reply = membersOf(content[textOf(content.type)]);
  const words = [content.body, content.caption, content.filename, content.emoji, content.text, reply.title]
    .map(textOf)
    .find((text) => text !== '');
  const media = textOf(content.id) && textOf(content.mime_type) ? ` ${textOf(content.mime_type)}` : '';
  return `${type}${media}${words === undefined ? '' : ` "${words}"`}`;
}

function moneyOf(value: unknown): string {
  const { value: units, offset } = membersOf(value);
  if (typeof units !== 'number' || typeof offset !== 'number' || !(offset >= 1)) {
    return '';
  }
  return (units / offset).toFixed(Math.round(Math.log10(offset)));
}

/** Two digits, as shops write them. */
function amountOf(value: unknown): string {
  return typeof value === 'number' ? value.toFixed(2) : textOf(value);
}

function joined(...parts: unknown[]): string {
  return parts
    .map(textOf)
    .filter((part) => part !== '')
    .join(' ');
}

const summaries: Record<string, (data: Members) => string> = {
  message: (data) => `${messageText(membersOf(data.message))}${senderOf(data)}`,
  status: (data) => {
    const status = membersOf(data.status);
    const [failure] = Array.isArray(status.errors) ? status.errors : [];
    const recipient = textOf(status.recipient_id);
    return joined(status.status, recipient && `→ ${recipient}`, membersOf(failure).title);
  },
  payment: (data) => joined(data.status, moneyOf(data.amount), data.currency, data.reference_id),
  order: (data) => {
    const service = membersOf(data.service);
    const count = textOf(service.items_count);
    return `${joined(service.order_number, count && `${count} items`, amountOf(service.total_amount), service.currency)}${senderOf(data)}`;
  },
  'media.ready': (data) => joined(data.mediaType, data.mimeType, data.mediaPath),
  test: (data) => joined(data.message),
  'window.closing': (data) => joined(data.conversationId, data.expiresAt),
  preference: (data) => joined(membersOf(data.customer).waId, data.state, data.scope, data.source),
};

/** What is in an event, in a few words; any body is accepted. */
export function eventSummary(eventType: string, data: unknown): string {
  const summary = Object.hasOwn(summaries, eventType) ? summaries[eventType] : undefined;
  return summary?.(membersOf(data)) ?? '';
}

/** The same without who sent it, for those who know. */
export function eventContent(eventType: string, data: unknown): string {
  const members = membersOf(data);
  const message = membersOf(members.message);
  const unsent = typeof members.message === 'string' ? {} : { message: { ...message, from: undefined } };
  return eventSummary(eventType, { ...members, ...unsent, contacts: [] });
}
