import type { EventType } from '../../../platform/event-type.ts';
import { publicDeliveryId, publicEventId } from '../../../platform/public-ids.ts';
import type { ConnectionTerms } from '../../../platform/sender/connection-terms.ts';
import type { HttpSender, SendResult } from '../../../platform/sender/http-sender.ts';
import type { EndpointSettings } from '../../endpoint/endpoint-settings.ts';
import { signAsUpstream, signStandard } from '../../endpoint/webhook-signature.ts';
import type { WorkflowMode } from '../../endpoint/workflow-mode.ts';
import type { ClaimedDelivery } from '../../queue/claim.ts';
import { upstreamBody } from '../upstream-format.ts';
import { webhookHeaders } from '../webhook-request.ts';

export type Sendable = Pick<
  ClaimedDelivery,
  'deliveryId' | 'eventUuid' | 'eventType' | 'eventId' | 'sequence' | 'attempts' | 'replay'
> & { body: Buffer };

/** When a request was sent, and what came of it. */
export type SentRequest = { startedAt: Date; result: SendResult };

/** Signs and POSTs the stored bytes once. Never rejects for what the receiver or the network does. */
export async function sendDelivery(
  sender: HttpSender,
  endpoint: SendableEndpoint,
  delivery: Sendable,
  timeoutMs: number,
): Promise<SentRequest> {
  const startedAt = new Date();
  const body = endpoint.appSecret === null ? delivery.body : upstreamBody(delivery.body);
  const headers = headersOf(endpoint, { ...delivery, body }, startedAt.getTime());
  const { url, terms } = endpoint;
  const result = await sender.send({ url, headers, body, timeoutMs, ...terms });
  return { startedAt, result };
}

/** As `sendDelivery`; null for what cannot be sent at all, a defect: its claim comes back with its lease, and its slot at once. */
export async function trySend(
  { sender, onTrouble }: { sender: HttpSender; onTrouble: (error: unknown) => void },
  endpoint: SendableEndpoint,
  delivery: Sendable,
  timeoutMs: number,
): Promise<SentRequest | null> {
  try {
    return await sendDelivery(sender, endpoint, delivery, timeoutMs);
  } catch (error) {
    onTrouble(error);
    return null;
  }
}

function headersOf(endpoint: SendableEndpoint, delivery: Sendable, nowMs: number): Record<string, string> {
  const { customHeaders, appSecret } = endpoint;
  const inForce = (secrets: readonly SigningSecret[]) =>
    secrets.filter(({ expiresMs }) => expiresMs > nowMs).map(({ secret }) => secret);
  const webhookId = publicEventId(delivery.eventUuid);
  const timestampSeconds = Math.floor(nowMs / 1000);
  const own = webhookHeaders({
    webhookId,
    timestampSeconds,
    signature: signStandard({
      secrets: [...inForce(endpoint.secrets), ...inForce(endpoint.signingKeys)],
      id: webhookId,
      timestampSeconds,
      body: delivery.body,
    }),
    hubSignature: appSecret === null ? undefined : signAsUpstream(appSecret, delivery.body),
    eventType: delivery.eventType,
    eventId: delivery.eventId,
    deliveryId: publicDeliveryId(delivery.deliveryId),
    attempt: delivery.attempts + 1,
    sequence: delivery.sequence,
    replay: delivery.replay,
  });
  return { ...customHeaders, ...own };
}

export type DeliveryDefaults = {
  /** Longest time from claim to the end of the response. An endpoint may only have a shorter one. */
  timeoutMs: number;
  retryScheduleMs: readonly number[];
  workflows: WorkflowMode;
};

/** An endpoint with its secrets opened. Never logged. */
export type SendableEndpoint = Pick<EndpointSettings, 'id' | 'wabaId' | 'tenantId' | 'url' | 'version'> & {
  timeoutMs: number;
  retryScheduleMs: readonly number[];
  workflows: WorkflowMode;
  /** Event types that have a run whatever `workflows` says. */
  alwaysWorkflowsFor: readonly EventType[];
  /** Where its webhooks may go; left out: anywhere that the installation allows. */
  terms: ConnectionTerms;
  customHeaders: Record<string, string>;
  /** Of an endpoint with the format `meta`; null: bodies are in Heliograph's format. */
  appSecret: string | null;
  /** The present one first. */
  secrets: readonly SigningSecret[];
  /** Private keys, likewise; none unless the endpoint asks for such a signature. */
  signingKeys: readonly SigningSecret[];
};

/** Signs until `expiresMs` (Unix time): the one before the present one does while receivers are given that. */
export type SigningSecret = { secret: string; expiresMs: number };
