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
