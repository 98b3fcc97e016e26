import { createHash } from 'node:crypto';
import type { SecretBox } from '../../../platform/crypto/secret-box.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import type { ConnectionTerms } from '../../../platform/sender/connection-terms.ts';
import {
  ENDPOINT_APP_SECRET,
  ENDPOINT_CLIENT_KEY,
  ENDPOINT_HEADERS,
  ENDPOINT_SECRET,
  ENDPOINT_SIGNING_KEY,
} from '../../endpoint/endpoint-secrets.ts';
import { type EndpointSettings, loadEndpointSettings } from '../../endpoint/endpoint-settings.ts';
import type { EndpointLimiter } from '../loop/attempt-limits.ts';
import type { DeliveryDefaults, SendableEndpoint, SigningSecret } from './send-delivery.ts';

/** Opens an endpoint's secrets and fills in the defaults. Throws when a secret was sealed with an unknown key. */
export function openEndpoint(
  settings: EndpointSettings,
  { secretBox, defaults }: { secretBox: SecretBox; defaults: DeliveryDefaults },
): SendableEndpoint {
  const { id, wabaId, tenantId, url, version } = settings;
  const { customHeadersSealed, asymmetricSignature, targetsAllow: allow, targetsDeny: deny } = settings;
  const opened = (place: string, sealed: string | null, expiresAt: Date | null): SigningSecret[] => {
    const expiresMs = expiresAt?.getTime() ?? Number.POSITIVE_INFINITY;
    return sealed === null ? [] : [{ secret: secretBox.open(sealed, place), expiresMs }];
  };
  const secretPlace = ENDPOINT_SECRET.place(id);
  const keyPlace = ENDPOINT_SIGNING_KEY.place(id);
  return {
    id,
    wabaId,
    tenantId,
    url,
    version,
    terms: {
      ...(allow.length + deny.length > 0 && { targets: { allow, deny } }),
      ...openCertificate(settings, secretBox),
    },
    timeoutMs: Math.min(settings.timeoutMs ?? defaults.timeoutMs, defaults.timeoutMs),
    workflows: settings.deliveryWorkflows ?? defaults.workflows,
    alwaysWorkflowsFor: settings.alwaysWorkflowsFor ?? [],
    retryScheduleMs: settings.retryScheduleSeconds?.map((s) => s * 1_000) ?? defaults.retryScheduleMs,
    customHeaders: JSON.parse(
      customHeadersSealed === null ? '{}' : secretBox.open(customHeadersSealed, ENDPOINT_HEADERS.place(id)),
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
  return secretBox.open(appSecretSealed, ENDPOINT_APP_SECRET.place(id));
}

function openCertificate(
  { id, clientCertificate: certificate, clientKeySealed }: EndpointSettings,
  secretBox: SecretBox,
): Pick<ConnectionTerms, 'clientCertificate'> {
  if (certificate === null || clientKeySealed === null) return {};
  const fingerprint = createHash('sha256').update(certificate).digest('base64');
  const privateKey = secretBox.open(clientKeySealed, ENDPOINT_CLIENT_KEY.place(id));
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
        const { maxInFlight, rateLimitPerSecond: ratePerSecond } = settings;
        const workflows = settings.alwaysWorkflowsFor === null ? settings.deliveryWorkflows : 'always';
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
