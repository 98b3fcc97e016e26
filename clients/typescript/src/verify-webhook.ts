import { Webhook, WebhookVerificationError } from 'standardwebhooks';
import type {
  MediaReadyEvent,
  MessageBatchEvent,
  MessageEvent,
  OrderEvent,
  PaymentEvent,
  PreferenceEvent,
  StatusEvent,
  TestEvent,
  UpstreamEvent,
  WindowClosingEvent,
} from './generated/types.gen.js';

/** What a webhook reports; `eventType` tells which. Further types may be added: pass over those you do not know. */
export type WebhookEvent =
  | MessageEvent
  | StatusEvent
  | PaymentEvent
  | OrderEvent
  | MediaReadyEvent
  | TestEvent
  | WindowClosingEvent
  | PreferenceEvent
  | MessageBatchEvent
  // The field is part of the type, so that the others can still be told apart by theirs.
  | (Omit<UpstreamEvent, 'eventType'> & { eventType: `upstream.${string}` });

/** Headers as `fetch` or Node's server gives them. */
export type WebhookHeaders = Headers | Record<string, string | string[] | undefined>;

const SIGNED_HEADERS = ['webhook-id', 'webhook-timestamp', 'webhook-signature'];

/**
 * Checks the signature and age of a webhook and returns its event. `payload` is the body as it came, not parsed and
 * written again; `secret` is the endpoint's, which begins with `whsec_`. Throws `WebhookVerificationError` of
 * standardwebhooks, whatever came; and `TypeError` for a secret that is none.
 */
export function verifyWebhook(
  payload: string | Uint8Array,
  headers: WebhookHeaders,
  secret: string,
): WebhookEvent {
  const key = bytesOf(secret.trim().replace(/^whsec_/, ''));
  if (key === null) throw new TypeError('The secret is not complete: it is whsec_ and base64.');
  const signed = Object.fromEntries(SIGNED_HEADERS.map((name) => [name, headerOf(headers, name)]));
  const text = typeof payload === 'string' ? payload : textOf(payload);
  new Webhook(key, { format: 'raw' }).verify(text, signed, { jsonParse: false });
  return eventOf(text);
}

/** How far the time of a webhook may be from ours. */
const TOLERANCE_SECONDS = 300;

/**
 * As `verifyWebhook`, with the public key of an endpoint that has `asymmetricSignature`: it begins with `whpk_` and is
 * no secret. Rejects with `WebhookVerificationError` of standardwebhooks, whatever came; and with `TypeError` for a
 * public key that is none.
 */
export async function verifyWebhookWithPublicKey(
  payload: string | Uint8Array,
  headers: WebhookHeaders,
  publicKey: string,
): Promise<WebhookEvent> {
  const bytes = bytesOf(publicKey.trim().replace(/^whpk_/, ''));
  if (bytes?.length !== KEY_BYTES)
    throw new TypeError('The public key is not complete: it is whpk_ and base64.');
  const key = await crypto.subtle.importKey('raw', bytes, 'Ed25519', false, ['verify']);
  const [id = '', time = '', list = ''] = SIGNED_HEADERS.map((name) => headerOf(headers, name));
  if (!(/^\d{1,15}$/.test(time) && Math.abs(Date.now() / 1_000 - Number(time)) <= TOLERANCE_SECONDS)) {
    throw new WebhookVerificationError('The time of the webhook is too far from ours.');
  }
  const body = typeof payload === 'string' ? new TextEncoder().encode(payload) : payload;
  const head = new TextEncoder().encode(`${id}.${time}.`);
  const signed = new Uint8Array(head.length + body.length);
  signed.set(head);
  signed.set(body, head.length);
  for (const entry of list.split(' ')) {
    const signature = entry.startsWith('v1a,') ? bytesOf(entry.slice('v1a,'.length)) : null;
    if (signature !== null && (await crypto.subtle.verify('Ed25519', key, signature, signed))) {
      return eventOf(textOf(body));
    }
  }
  throw new WebhookVerificationError('No signature of the webhook matches the public key.');
}

const KEY_BYTES = 32;

/** The bytes of base64; null when it is none, or empty. */
function bytesOf(base64: string): Uint8Array<ArrayBuffer> | null {
  if (base64 === '' || !/^[A-Za-z0-9+/]*={0,2}$/.test(base64)) return null;
  try {
    return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  } catch {
    return null;
  }
}

function textOf(body: Uint8Array): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(body);
}

function eventOf(text: string): WebhookEvent {
  try {
    return JSON.parse(text) as WebhookEvent;
  } catch {
    throw new WebhookVerificationError('The body of the webhook is no JSON.');
  }
}

function headerOf(headers: WebhookHeaders, name: string): string {
  if (headers instanceof Headers) return headers.get(name) ?? '';
  const found = Object.entries(headers).find(([one]) => one.toLowerCase() === name)?.[1];
  return (Array.isArray(found) ? found[0] : found) ?? '';
}
