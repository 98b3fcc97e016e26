import { MESSAGE_BATCH } from '../../platform/event-type.ts';
import { USER_AGENT } from '../../platform/http/user-agent.ts';
import { publicBatchId, publicDeliveryId, publicEventId } from '../../platform/public-ids.ts';

/** The content of the headers of one webhook attempt. `attempt` counts from 1; `sequence` counts within one ordering key. */
type WebhookHeadersInput = {
  /** Our own event id: the same over attempts, endpoints and replays, without a dot. */
  webhookId: string;
  timestampSeconds: number;
  signature: string;
  /** Of endpoints with the format `meta`. */
  hubSignature?: string | undefined;
  eventType: string;
  /** The event's `eventId` exactly as in the body; not unique and possibly not ASCII. */
  eventId: string;
  deliveryId: string;
  attempt: number;
  sequence: number | string | bigint;
  replay: boolean;
};

/** The headers of one webhook attempt. Everything that differs between attempts is here, never in the body. */
export function webhookHeaders(input: WebhookHeadersInput): Record<string, string> {
  return {
    'content-type': 'application/json',
    'user-agent': USER_AGENT,
    'X-Service-Signature': input.signature,
    ...(input.hubSignature === undefined ? {} : { 'X-Hub-Signature-256': input.hubSignature }),
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

/** A request as the log knows it; null: the event is gone from it. */
type LoggedRequest = {
  delivery: { id: string; eventUuid: string; replayId: string | null; sentWith: string | null };
  event: { eventType: string | null; eventId: string | null; sequence: string | null };
  attempt: { attempt: number; startedAt: Date; userAgent: string; customHeaders: string | null };
};

/**
 * The headers that an attempt was sent with, as far as they are known. Signatures are left out: a reader of the log must not
 * be able to replay a request with them. Of the tenant's headers the names are known, not the values.
 */
export function sentHeaders({ delivery, event, attempt }: LoggedRequest): Record<string, string> {
  const { sentWith } = delivery;
  const own = webhookHeaders({
    webhookId: publicEventId(sentWith ?? delivery.eventUuid),
    timestampSeconds: Math.floor(attempt.startedAt.getTime() / 1000),
    signature: '',
    eventType: sentWith === null ? (event.eventType ?? '') : MESSAGE_BATCH,
    eventId: sentWith === null ? (event.eventId ?? '') : publicBatchId(sentWith),
    deliveryId: publicDeliveryId(sentWith ?? delivery.id),
    attempt: attempt.attempt,
    sequence: sentWith === null ? (event.sequence ?? '') : '1',
    replay: delivery.replayId !== null,
  });
  const custom = attempt.customHeaders?.split(',').map((name) => [name, '(not shown)']) ?? [];
  const known = Object.entries({ ...own, 'user-agent': attempt.userAgent }).filter(
    ([, value]) => value !== '',
  );
  return Object.fromEntries([...custom, ...known]);
}

/**
 * Encodes what a header cannot carry: UTF-8 bytes outside visible ASCII, and the percent sign itself so that
 * decodeURIComponent restores the text.
 */
function percentEncode(text: string): string {
  return text.replace(/[^\x21-\x7e]+|%/gu, (part) =>
    Array.from(
      Buffer.from(part, 'utf8'),
      (byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`,
    ).join(''),
  );
}
