import { createHmac, timingSafeEqual } from 'node:crypto';
import type { EventHead } from './event-block.ts';

export type Headers = Readonly<Record<string, string>>;

/** A secret as `whsec_…` as bytes; null when it is none. */
export function secretBytes(secret: string): Buffer | null {
  const base64 = secret.replace(/^whsec_/, '');
  if (!secret.startsWith('whsec_') || !/^[A-Za-z0-9+/]+={0,2}$/.test(base64)) return null;
  const bytes = Buffer.from(base64, 'base64');
  return bytes.length >= 24 && bytes.length <= 64 ? bytes : null;
}

/** The signature of Standard Webhooks. */
export function signatureOf(key: Uint8Array, id: string, timestamp: string, body: Uint8Array): string {
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`;
}

/** Whether one entry of the list is this signature. */
export function hasSignature(list: string, expected: string): boolean {
  const wanted = Buffer.from(expected);
  return list.split(' ').some((entry) => {
    const given = Buffer.from(entry);
    return given.length === wanted.length && timingSafeEqual(given, wanted);
  });
}

export type Attempt = {
  event: EventHead;
  deliveryId: string;
  attempt: number;
  userAgent: string;
  timestampSeconds: number;
};

/** The headers of a webhook, as the service sends them. */
export function webhookHeaders(secret: string, body: Uint8Array, made: Attempt): Record<string, string> {
  const { event, deliveryId, attempt, userAgent, timestampSeconds } = made;
  const key = secretBytes(secret);
  if (key === null) throw new TypeError('the secret is none of Standard Webhooks');
  const signature = signatureOf(key, event.id, String(timestampSeconds), body);
  return {
    'content-type': 'application/json',
    'user-agent': userAgent,
    'X-Service-Signature': signature,
    'webhook-id': event.id,
    'webhook-timestamp': String(timestampSeconds),
    'webhook-signature': signature,
    'Idempotency-Key': event.id,
    'X-Service-Event-Type': event.eventType,
    'X-Service-Event-Id': percentEncode(event.eventId),
    'X-Service-Delivery-Id': deliveryId,
    'X-Service-Attempt': String(attempt),
    'X-Service-Sequence': String(event.sequence),
  };
}

/** Encodes what a header cannot carry, and the percent sign. */
function percentEncode(text: string): string {
  return text.replace(/[^\x21-\x7e]+|%/gu, (part) =>
    Array.from(
      Buffer.from(part, 'utf8'),
      (byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`,
    ).join(''),
  );
}
