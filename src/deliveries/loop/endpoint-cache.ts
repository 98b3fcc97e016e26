import { loadEndpointSettings } from '../../endpoints/endpoint-settings.ts';
import type { SecretBox } from '../../platform/crypto/secret-box.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { type DeliveryDefaults, openEndpoint, type SendableEndpoint } from '../attempt/sendable-endpoint.ts';
import type { EndpointLimiter } from './endpoint-limiter.ts';

export type EndpointCache = {
  /** The endpoint as it is at this version; undefined while it has to be loaded. */
  get(endpointId: string, version: number): SendableEndpoint | undefined;
  /** Loads endpoints that are not cached at the wanted version; those that are gone or cannot be opened are left out. */
  load(wanted: ReadonlyMap<string, number>): Promise<void>;
  has(endpointId: string): boolean;
};

/** The endpoints that the loop sends to, read and unsealed once per version. */
export function makeEndpointCache(tools: {
  database: Database;
  secretBox: SecretBox;
  defaults: DeliveryDefaults;
  limiter: EndpointLimiter;
  onUnreadable: (endpointId: string, error: unknown) => void;
}): EndpointCache {
  const endpoints = new Map<string, SendableEndpoint>();
  return {
    get(endpointId, version) {
      const endpoint = endpoints.get(endpointId);
      return endpoint !== undefined && endpoint.version >= version ? endpoint : undefined;
    },
    async load(wanted) {
      const stale = [...wanted].filter(([id, version]) => (endpoints.get(id)?.version ?? -1) < version);
      if (stale.length === 0) return;
      const loaded = await loadEndpointSettings(
        tools.database,
        stale.map(([id]) => id),
      );
      for (const settings of loaded) {
        const { maxInFlight, rateLimitPerSecond: ratePerSecond } = settings;
        tools.limiter.allow(new Map([[settings.id, { maxInFlight, ratePerSecond }]]));
        try {
          endpoints.set(settings.id, openEndpoint(settings, tools));
        } catch (error) {
          endpoints.delete(settings.id);
          tools.onUnreadable(settings.id, error);
        }
      }
    },
    has: (endpointId) => endpoints.has(endpointId),
  };
}
