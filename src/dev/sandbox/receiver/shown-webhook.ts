import { readEnvelope } from './event-envelope.ts';
import { eventContent } from './event-summary.ts';
import { printableText } from './printable-text.ts';
import type { ReceivedWebhook } from './received-webhooks.ts';

/** What a list shows of a webhook: what is in it in a few words, not its body. */
export type ShownWebhook = Omit<ReceivedWebhook, 'body' | 'bodyBase64'> & {
  eventType: string;
  eventId: string;
  summary: string;
  /** Of `status` and `payment` events: the state that they report. */
  state: string | null;
};

/** Shortens a webhook for a list. */
export function shownWebhook({ body, bodyBase64: _bytes, ...webhook }: ReceivedWebhook): ShownWebhook {
  const { eventType, eventId, data } = readEnvelope(body);
  const summary = printableText(eventContent(eventType, data), 200);
  return { ...webhook, eventType: printableText(eventType, 40), eventId, summary, state: stateOf(data) };
}

function stateOf(data: unknown): string | null {
  const { status } = (data ?? {}) as { status?: unknown };
  const state = typeof status === 'object' ? (status as { status?: unknown } | null)?.status : status;
  return typeof state === 'string' ? state : null;
}
