import packageJson from '../../package.json' with { type: 'json' };

/** What the headers of one webhook attempt say. `attempt` counts from 1; `sequence` counts within one ordering key. */
export type WebhookHeadersInput = {
  /** Our own event id: the same over attempts, endpoints and replays, without a dot. */
  webhookId: string;
  timestampSeconds: number;
  /** The Standard Webhooks list. */
  signature: string;
  /** Takes the place of the list in X-Service-Signature when the endpoint has another signature profile. */
  profileSignature?: string | undefined;
  eventType: string;
  /** The event's `eventId` exactly as in the body; not unique and possibly not ASCII. */
  eventId: string;
  deliveryId: string;
  attempt: number;
  sequence: number | string | bigint;
  replay: boolean;
};

const USER_AGENT = `Heliograph/${packageJson.version}`;

/** The headers of one webhook attempt. Everything that differs between attempts is here, never in the body. */
export function webhookHeaders(input: WebhookHeadersInput): Record<string, string> {
  return {
    'content-type': 'application/json',
    'user-agent': USER_AGENT,
    'X-Service-Signature': input.profileSignature ?? input.signature,
    'webhook-id': input.webhookId,
    'webhook-timestamp': String(input.timestampSeconds),
    'webhook-signature': input.signature,
    'Idempotency-Key': input.webhookId,
    'X-Service-Event-Type': input.eventType,
    'X-Service-Event-Id': percentEncode(input.eventId),
    'X-Service-Delivery-Id': input.deliveryId,
    'X-Service-Attempt': String(input.attempt),
    'X-Service-Sequence': String(input.sequence),
    ...(input.replay ? { 'X-Service-Replay': 'true' } : {}),
  };
}

/**
 * Encodes what a header cannot carry: UTF-8 bytes outside visible ASCII, and the percent sign itself so that
 * decodeURIComponent gives the text back.
 */
function percentEncode(text: string): string {
  return text.replace(/[^\x21-\x7e]+|%/gu, (part) =>
    Array.from(
      Buffer.from(part, 'utf8'),
      (byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`,
    ).join(''),
  );
}

const RESERVED_NAMES = new Set(
  `accept-encoding authority connection content-encoding content-length content-type cookie cookie2 date expect
   forwarded host http2-settings idempotency-key keep-alive origin proxy-authenticate proxy-authorization
   proxy-connection referer set-cookie te trailer transfer-encoding upgrade user-agent via`.split(/\s+/),
);
const RESERVED_PREFIXES = ['x-service-', 'webhook-', 'x-forwarded-', 'sec-', ':'];

/**
 * Whether a tenant's custom header may not have this name: ours, those that say where and how the body is sent,
 * and those that a browser or a proxy would set. Case does not matter.
 */
export function isReservedHeader(name: string): boolean {
  const lowered = name.trim().toLowerCase();
  return RESERVED_NAMES.has(lowered) || RESERVED_PREFIXES.some((prefix) => lowered.startsWith(prefix));
}
