import { publicDeliveryId, publicEventId } from '../../platform/public-ids.ts';
import type { DeliveredEvent } from '../delivery-log.ts';
import type { HttpSender } from '../sender/http-sender.ts';
import { webhookHeaders } from '../webhook-headers.ts';
import { signStandard, signWith } from '../webhook-signature.ts';
import type { SentRequest } from './attempt-log.ts';
import type { SendableEndpoint } from './sendable-endpoint.ts';

export type Sendable = Omit<DeliveredEvent, 'wabaId'> & {
  deliveryId: string;
  eventUuid: string;
  /** Attempts made before this one. */
  attempts: number;
  replay: boolean;
};

/** Signs and POSTs the stored bytes once. Never rejects for what the receiver or the network does. */
export async function sendDelivery(
  sender: HttpSender,
  endpoint: SendableEndpoint,
  delivery: Sendable,
  timeoutMs: number,
): Promise<SentRequest> {
  const startedAt = new Date();
  const headers = headersOf(endpoint, delivery, startedAt.getTime());
  const result = await sender.send({ url: endpoint.url, headers, body: delivery.body, timeoutMs });
  return { wabaId: endpoint.wabaId, url: endpoint.url, startedAt, headers, result };
}

function headersOf(endpoint: SendableEndpoint, delivery: Sendable, nowMs: number): Record<string, string> {
  const { previousSecret, signatureProfile, customHeaders } = endpoint;
  const secrets = [endpoint.secret];
  if (previousSecret !== null && previousSecret.expiresMs > nowMs) secrets.push(previousSecret.secret);
  const webhookId = publicEventId(delivery.eventUuid);
  const timestampSeconds = Math.floor(nowMs / 1000);
  const signed = { secrets, id: webhookId, timestampSeconds, body: delivery.body };
  const own = webhookHeaders({
    webhookId,
    timestampSeconds,
    signature: signStandard(signed),
    profileSignature: signatureProfile === 'standard' ? undefined : signWith(signatureProfile, signed),
    eventType: delivery.eventType,
    eventId: delivery.eventId,
    deliveryId: publicDeliveryId(delivery.deliveryId),
    attempt: delivery.attempts + 1,
    sequence: delivery.sequence,
    replay: delivery.replay,
  });
  return { ...customHeaders, ...own };
}
