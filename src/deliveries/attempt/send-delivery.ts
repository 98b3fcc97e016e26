import { createHash } from 'node:crypto';
import { type EndpointSettings, loadEndpointSettings } from '../../endpoints/endpoint-settings.ts';
import {
  endpointAppSecretPlace,
  endpointClientKeyPlace,
  endpointHeadersPlace,
  endpointSecretPlace,
  endpointSigningKeyPlace,
} from '../../endpoints/sealed-columns.ts';
import { signAsUpstream, signStandard, signWith } from '../../endpoints/webhook-signature.ts';
import type { SecretBox } from '../../platform/crypto/secret-box.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { publicDeliveryId, publicEventId } from '../../platform/public-ids.ts';
import type { HttpSender, SendResult } from '../../platform/sender/http-sender.ts';
import type { ConnectionTerms } from '../../platform/sender/origin-pools.ts';
import type { ClaimedDelivery, WorkflowMode } from '../../queue/claim.ts';
import type { EndpointLimiter } from '../loop/attempt-limits.ts';
import { upstreamBody } from '../upstream-format.ts';
import { webhookHeaders } from '../webhook-request.ts';

type Sendable = Pick<
  ClaimedDelivery,
  'deliveryId' | 'eventUuid' | 'eventType' | 'eventId' | 'sequence' | 'body' | 'attempts' | 'replay'
>;

/** One request as it was sent, and what came of it. */
export type SentRequest = {
  wabaId: string;
  url: string;
  startedAt: Date;
  result: SendResult;
};

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
  const { url, terms, wabaId } = endpoint;
  const result = await sender.send({ url, headers, body, timeoutMs, ...terms });
  return { wabaId, url, startedAt, result };
}

function headersOf(endpoint: SendableEndpoint, delivery: Sendable, nowMs: number): Record<string, string> {
  const { signatureProfile, customHeaders, appSecret } = endpoint;
  const inForce = (secrets: readonly SigningSecret[]) =>
    secrets.filter(({ expiresMs }) => expiresMs > nowMs).map(({ secret }) => secret);
  const secrets = inForce(endpoint.secrets);
  const webhookId = publicEventId(delivery.eventUuid);
  const timestampSeconds = Math.floor(nowMs / 1000);
  const signed = { secrets, id: webhookId, timestampSeconds, body: delivery.body };
  const own = webhookHeaders({
    webhookId,
    timestampSeconds,
    signature: signStandard({ ...signed, secrets: [...secrets, ...inForce(endpoint.signingKeys)] }),
    profileSignature: signatureProfile === 'standard' ? undefined : signWith(signatureProfile, signed),
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

/** What holds for every endpoint that says nothing else. */
export type DeliveryDefaults = {
  /** Longest time from claim to the end of the response. An endpoint may only have a shorter one. */
  timeoutMs: number;
  /** Waits between attempts. */
  retryScheduleMs: readonly number[];
  workflows: WorkflowMode;
};

/** An endpoint with its secrets opened. Never logged. */
export type SendableEndpoint = Pick<
  EndpointSettings,
  'id' | 'wabaId' | 'tenantId' | 'url' | 'version' | 'signatureProfile'
> & {
  timeoutMs: number;
  retryScheduleMs: readonly number[];
  workflows: WorkflowMode;
  /** Where its webhooks may go; left out: anywhere that the installation allows. */
  terms: ConnectionTerms;
  /** The headers that the tenant adds. */
  customHeaders: Record<string, string>;
  /** Of an endpoint with the format `meta`; null: bodies are in Heliograph's format. */
  appSecret: string | null;
  /** The present one first. */
  secrets: readonly SigningSecret[];
  /** Private keys, likewise; none unless the endpoint asks for such a signature. */
  signingKeys: readonly SigningSecret[];
};

/** Signs until `expiresMs` (Unix time): the one before the present one does while receivers are given that. */
type SigningSecret = { secret: string; expiresMs: number };

/** Opens an endpoint's secrets and fills in the defaults. Throws when a secret was sealed with an unknown key. */
export function openEndpoint(
  settings: EndpointSettings,
  { secretBox, defaults }: { secretBox: SecretBox; defaults: DeliveryDefaults },
): SendableEndpoint {
  const { id, wabaId, tenantId, url, version, signatureProfile } = settings;
  const { customHeadersSealed, asymmetricSignature, targetsAllow: allow, targetsDeny: deny } = settings;
  const opened = (place: string, sealed: string | null, expiresAt: Date | null): SigningSecret[] => {
    const expiresMs = expiresAt?.getTime() ?? Number.POSITIVE_INFINITY;
    return sealed === null ? [] : [{ secret: secretBox.open(sealed, place), expiresMs }];
  };
  const secretPlace = endpointSecretPlace(id);
  const keyPlace = endpointSigningKeyPlace(id);
  return {
    ...{ id, wabaId, tenantId, url, version, signatureProfile },
    terms: {
      ...(allow.length + deny.length > 0 && { targets: { allow, deny } }),
      ...openCertificate(settings, secretBox),
    },
    timeoutMs: Math.min(settings.timeoutMs ?? defaults.timeoutMs, defaults.timeoutMs),
    workflows: settings.deliveryWorkflows ?? defaults.workflows,
    retryScheduleMs: settings.retryScheduleSeconds?.map((s) => s * 1_000) ?? defaults.retryScheduleMs,
    customHeaders: JSON.parse(
      customHeadersSealed === null ? '{}' : secretBox.open(customHeadersSealed, endpointHeadersPlace(id)),
    ),
    appSecret: openAppSecret(settings, secretBox),
    secrets: [
      ...opened(secretPlace, settings.secretSealed, null),
      ...opened(secretPlace, settings.previousSecretSealed, settings.previousSecretExpiresAt),
    ],
    signingKeys:
      asymmetricSignature === 'none'
        ? []
        : [
            ...opened(keyPlace, settings.signingKeySealed, null),
            ...opened(keyPlace, settings.previousSigningKeySealed, settings.previousSigningKeyExpiresAt),
          ],
  };
}

function openAppSecret(
  { id, format, appSecretSealed }: EndpointSettings,
  secretBox: SecretBox,
): string | null {
  if (format !== 'meta') return null;
  if (appSecretSealed === null) throw new Error(`endpoint ${id} has no app secret`);
  return secretBox.open(appSecretSealed, endpointAppSecretPlace(id));
}

function openCertificate(
  { id, clientCertificate: certificate, clientKeySealed }: EndpointSettings,
  secretBox: SecretBox,
): Pick<ConnectionTerms, 'clientCertificate'> {
  if (certificate === null || clientKeySealed === null) return {};
  const fingerprint = createHash('sha256').update(certificate).digest('base64');
  const privateKey = secretBox.open(clientKeySealed, endpointClientKeyPlace(id));
  return { clientCertificate: { fingerprint, certificate, privateKey } };
}

export type EndpointCache = ReturnType<typeof makeEndpointCache>;

/** The endpoints that the loop sends to, read and unsealed once per version. */
export function makeEndpointCache(tools: {
  database: Database;
  secretBox: SecretBox;
  defaults: DeliveryDefaults;
  limiter: EndpointLimiter;
  onUnreadable: (endpointId: string, error: unknown) => void;
}) {
  const endpoints = new Map<string, SendableEndpoint>();
  return {
    /** The endpoint as it is at this version; undefined while it has to be loaded. */
    get(endpointId: string, version: number): SendableEndpoint | undefined {
      const endpoint = endpoints.get(endpointId);
      return endpoint !== undefined && endpoint.version >= version ? endpoint : undefined;
    },
    /** Loads endpoints that are not cached at the wanted version; those that are gone or cannot be opened are left out. */
    async load(wanted: ReadonlyMap<string, number>): Promise<void> {
      const stale = [...wanted].filter(([id, version]) => (endpoints.get(id)?.version ?? -1) < version);
      if (stale.length === 0) return;
      const loaded = await loadEndpointSettings(
        tools.database,
        stale.map(([id]) => id),
      );
      for (const settings of loaded) {
        const { maxInFlight, rateLimitPerSecond: ratePerSecond, deliveryWorkflows: workflows } = settings;
        tools.limiter.allow(settings.id, { maxInFlight, ratePerSecond, workflows });
        try {
          endpoints.set(settings.id, openEndpoint(settings, tools));
        } catch (error) {
          endpoints.delete(settings.id);
          tools.onUnreadable(settings.id, error);
        }
      }
    },
    has: (endpointId: string) => endpoints.has(endpointId),
  };
}
