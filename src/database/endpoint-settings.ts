import type { SignatureProfile } from '../domain/webhook/webhook-signature.ts';
import type { Database } from './database.ts';
import { query } from './sql.ts';

export type EndpointMode = 'open' | 'probing' | 'paused' | 'disabled';

/** What an attempt needs to know of an endpoint, secrets sealed. Null options mean the installation's setting. */
export type EndpointSettings = {
  id: string;
  wabaId: string;
  url: string;
  mode: EndpointMode;
  /** Grows with every change. */
  version: number;
  secretSealed: string;
  previousSecretSealed: string | null;
  previousSecretExpiresAt: Date | null;
  customHeadersSealed: string | null;
  signatureProfile: SignatureProfile;
  timeoutMs: number | null;
  retryScheduleSeconds: number[] | null;
  maxInFlight: number | null;
  rateLimitPerSecond: number | null;
};

/** The settings of these endpoints; unknown ones are absent. For the worker, which serves every tenant. */
export async function loadEndpointSettings(
  database: Database,
  endpointIds: readonly string[],
): Promise<EndpointSettings[]> {
  return await query<EndpointSettings>(
    database,
    `select id, waba_id as "wabaId", url, mode, version, secret_sealed as "secretSealed",
            previous_secret_sealed as "previousSecretSealed",
            previous_secret_expires_at as "previousSecretExpiresAt",
            custom_headers_sealed as "customHeadersSealed", signature_profile as "signatureProfile",
            timeout_ms as "timeoutMs", retry_schedule_seconds as "retryScheduleSeconds",
            max_in_flight as "maxInFlight", rate_limit_per_second as "rateLimitPerSecond"
       from webhook_endpoints where id = any (?::bigint[])`,
    [endpointIds],
  );
}

/** The endpoints whose tenants limit what they get at once or per second. */
export async function findLimitedEndpoints(
  database: Database,
): Promise<{ id: string; maxInFlight: number | null; ratePerSecond: number | null }[]> {
  return await query(
    database,
    `select id, max_in_flight as "maxInFlight", rate_limit_per_second as "ratePerSecond" from webhook_endpoints
      where max_in_flight is not null or rate_limit_per_second is not null`,
  );
}

/** Endpoints that were switched on within the last `seconds`, and when (Unix time, ms). */
export async function findSwitchedOn(
  database: Database,
  seconds: number,
): Promise<{ id: string; atMs: number }[]> {
  return await query(
    database,
    `select id, cast(extract(epoch from mode_changed_at) * 1000 as float8) as "atMs" from webhook_endpoints
      where mode = 'open' and mode_changed_at > now() - :seconds * interval '1 second' and mode_changed_at > created_at`,
    { seconds },
  );
}
