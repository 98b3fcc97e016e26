import type { ChatEntry, ListedWebhook } from './sandbox-client.ts';

const MEDIA_SUFFIX = '_media';

/**
 * How long it took from the tap on the phone (or from the moment when a status came about) to this receipt, in
 * milliseconds; null when the sandbox does not remember the tap.
 */
export function sinceTapMs(webhook: ListedWebhook, chat: readonly ChatEntry[]): number | null {
  const tappedAt = tapTime(webhook, chat);
  return tappedAt === undefined ? null : Math.max(0, Date.parse(webhook.receivedAt) - Date.parse(tappedAt));
}

function tapTime(webhook: ListedWebhook, chat: readonly ChatEntry[]): string | undefined {
  const { eventType, eventId, state, receivedAt } = webhook;
  const before = (entry: ChatEntry) => entry.at <= receivedAt;
  switch (eventType) {
    case 'message':
      return chat.find((entry) => entry.id === eventId)?.at;
    case 'media.ready': {
      const messageId = eventId.endsWith(MEDIA_SUFFIX) ? eventId.slice(0, -MEDIA_SUFFIX.length) : eventId;
      return chat.find((entry) => entry.id === messageId)?.at;
    }
    case 'status':
      return chat.find((entry) => entry.id === eventId)?.states.find((one) => one.state === state)?.at;
    case 'payment':
      return chat.findLast((entry) => before(entry) && eventId.startsWith(`payment:${entry.id}:`))?.at;
    case 'order':
      return chat.findLast((entry) => before(entry) && entry.message.type === 'order')?.at;
    default:
      return undefined;
  }
}
