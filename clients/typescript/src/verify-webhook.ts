import { Webhook } from 'standardwebhooks';
import type {
  MediaReadyEvent,
  MessageEvent,
  OrderEvent,
  PaymentEvent,
  StatusEvent,
  TestEvent,
} from './generated/types.gen.js';

/** What a webhook reports; `eventType` tells which. Further types may be added: pass over those you do not know. */
export type WebhookEvent =
  | MessageEvent
  | StatusEvent
  | PaymentEvent
  | OrderEvent
  | MediaReadyEvent
  | TestEvent;

/** Headers as `fetch` or Node's server gives them. */
export type WebhookHeaders = Headers | Record<string, string | string[] | undefined>;

const SIGNED_HEADERS = ['webhook-id', 'webhook-timestamp', 'webhook-signature'];

/**
 * Checks the signature and age of a webhook and returns its event. `payload` is the body as it came, not parsed and
 * written again; `secret` is the endpoint's, which begins with `whsec_`. Throws `WebhookVerificationError` of
 * standardwebhooks.
 */
export function verifyWebhook(
  payload: string | Uint8Array,
  headers: WebhookHeaders,
  secret: string,
): WebhookEvent {
  const signed = Object.fromEntries(SIGNED_HEADERS.map((name) => [name, headerOf(headers, name)]));
  const text =
    typeof payload === 'string' ? payload : new TextDecoder('utf-8', { ignoreBOM: true }).decode(payload);
  return new Webhook(secret).verify(text, signed) as WebhookEvent;
}

function headerOf(headers: WebhookHeaders, name: string): string {
  if (headers instanceof Headers) return headers.get(name) ?? '';
  const found = Object.entries(headers).find(([one]) => one.toLowerCase() === name)?.[1];
  return (Array.isArray(found) ? found[0] : found) ?? '';
}
