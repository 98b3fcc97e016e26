import type { EndpointSettings } from '../../endpoints/endpoint-settings.ts';
import {
  endpointHeadersPlace,
  endpointSecretPlace,
  type SecretBox,
} from '../../platform/crypto/secret-box.ts';

/** What holds for every endpoint that says nothing else. */
export type DeliveryDefaults = {
  /** Longest time from claim to the end of the response. An endpoint may only have a shorter one. */
  timeoutMs: number;
  /** Waits between attempts. */
  retryScheduleMs: readonly number[];
};

/** An endpoint with its secrets opened. Never logged. */
export type SendableEndpoint = Pick<
  EndpointSettings,
  'id' | 'wabaId' | 'tenantId' | 'url' | 'version' | 'signatureProfile' | 'maxInFlight' | 'rateLimitPerSecond'
> & {
  timeoutMs: number;
  retryScheduleMs: readonly number[];
  /** The headers that the tenant adds. */
  customHeaders: Record<string, string>;
  secret: string;
  /** Signs too until `expiresMs` (Unix time): receivers are being given the new one. */
  previousSecret: { secret: string; expiresMs: number } | null;
};

/** Opens an endpoint's secrets and fills in the defaults. Throws when a secret was sealed with an unknown key. */
export function openEndpoint(
  settings: EndpointSettings,
  { secretBox, defaults }: { secretBox: SecretBox; defaults: DeliveryDefaults },
): SendableEndpoint {
  const { id, wabaId, tenantId, url, version, signatureProfile, maxInFlight, rateLimitPerSecond } = settings;
  const { customHeadersSealed, previousSecretSealed, previousSecretExpiresAt } = settings;
  const openSecret = (sealed: string) => secretBox.open(sealed, endpointSecretPlace(id));
  return {
    ...{ id, wabaId, tenantId, url, version, signatureProfile, maxInFlight, rateLimitPerSecond },
    timeoutMs: Math.min(settings.timeoutMs ?? defaults.timeoutMs, defaults.timeoutMs),
    retryScheduleMs: settings.retryScheduleSeconds?.map((s) => s * 1_000) ?? defaults.retryScheduleMs,
    customHeaders:
      customHeadersSealed === null
        ? {}
        : JSON.parse(secretBox.open(customHeadersSealed, endpointHeadersPlace(id))),
    secret: openSecret(settings.secretSealed),
    previousSecret:
      previousSecretSealed === null || previousSecretExpiresAt === null
        ? null
        : { secret: openSecret(previousSecretSealed), expiresMs: previousSecretExpiresAt.getTime() },
  };
}
