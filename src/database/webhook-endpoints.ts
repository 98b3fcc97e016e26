import type { EventType } from '../domain/event-type.ts';
import type { SignatureProfile } from '../domain/webhook/webhook-signature.ts';
import type { Database } from './database.ts';
import type { EndpointMode } from './endpoint-settings.ts';
import { execute, query } from './sql.ts';
import type { OrderScope } from './subscribers.ts';

/** What a tenant may choose for an endpoint, as it is stored. Null means the installation's setting, or no limit. */
export type StoredEndpointOptions = {
  url: string;
  description: string;
  eventTypes: EventType[] | null;
  phoneNumberIds: string[] | null;
  customHeadersSealed: string | null;
  retryScheduleSeconds: number[] | null;
  timeoutMs: number | null;
  signatureProfile: SignatureProfile;
  maxInFlight: number | null;
  rateLimitPerSecond: number | null;
  blockLimitSeconds: number | null;
  orderScope: OrderScope;
};

export type Endpoint = StoredEndpointOptions & {
  id: string;
  wabaId: string;
  /** An order scope asked for that has not taken effect yet. */
  wantedOrderScope: OrderScope | null;
  mode: EndpointMode;
  modeReason: string | null;
  modeChangedAt: Date;
  failingSince: Date | null;
  nextProbeAt: Date | null;
  probeFailures: number;
  /** Until when the secret before the present one signs too; null when it does not. */
  previousSecretExpiresAt: Date | null;
  version: number;
  createdAt: Date;
  updatedAt: Date;
};

const ENDPOINT = `id, waba_id as "wabaId", url, description, event_types as "eventTypes",
  phone_number_ids as "phoneNumberIds", custom_headers_sealed as "customHeadersSealed",
  retry_schedule_seconds as "retryScheduleSeconds", timeout_ms as "timeoutMs",
  signature_profile as "signatureProfile", max_in_flight as "maxInFlight",
  rate_limit_per_second as "rateLimitPerSecond", block_limit_seconds as "blockLimitSeconds",
  order_scope as "orderScope", wanted_order_scope as "wantedOrderScope",
  mode, mode_reason as "modeReason", mode_changed_at as "modeChangedAt", failing_since as "failingSince",
  next_probe_at as "nextProbeAt", probe_failures as "probeFailures",
  case when previous_secret_sealed is not null and previous_secret_expires_at > now()
       then previous_secret_expires_at end as "previousSecretExpiresAt",
  version, created_at as "createdAt", updated_at as "updatedAt"`;

/** Draws the id of a new endpoint: the sealed secret is bound to it, so it is needed first. */
export async function nextEndpointId(database: Database): Promise<string> {
  const [row] = await query<{ id: string }>(
    database,
    `select nextval(pg_get_serial_sequence('webhook_endpoints', 'id')) as id`,
  );
  if (row === undefined) throw new Error('the sequence gave no endpoint id');
  return row.id;
}

/** What a new endpoint must have; every other setting may be left to its default. */
export type NewEndpoint = Partial<StoredEndpointOptions> &
  Pick<StoredEndpointOptions, 'url' | 'description' | 'eventTypes'> & { id: string; secretSealed: string };

export async function insertEndpoint(
  database: Database,
  wabaId: string,
  endpoint: NewEndpoint,
): Promise<void> {
  await execute(
    database,
    `insert into webhook_endpoints
       (id, waba_id, secret_sealed, url, description, event_types, phone_number_ids, custom_headers_sealed,
        retry_schedule_seconds, timeout_ms, signature_profile, max_in_flight, rate_limit_per_second,
        block_limit_seconds, order_scope)
     values
       (:id, :wabaId, :secretSealed, :url, :description, cast(:eventTypes as text[]),
        cast(:phoneNumberIds as text[]), :customHeadersSealed, cast(:retryScheduleSeconds as integer[]),
        :timeoutMs, :signatureProfile, :maxInFlight, :rateLimitPerSecond, :blockLimitSeconds, :orderScope)`,
    {
      phoneNumberIds: null,
      customHeadersSealed: null,
      retryScheduleSeconds: null,
      timeoutMs: null,
      signatureProfile: 'standard',
      maxInFlight: null,
      rateLimitPerSecond: null,
      blockLimitSeconds: null,
      orderScope: 'event',
      wabaId,
      ...endpoint,
    },
  );
}

export async function listEndpoints(database: Database, wabaId: string): Promise<Endpoint[]> {
  return await query<Endpoint>(
    database,
    `select ${ENDPOINT} from webhook_endpoints where waba_id = ? order by id`,
    [wabaId],
  );
}

/** One endpoint of a WABA; null when it has none such. */
export async function findEndpoint(database: Database, wabaId: string, id: string): Promise<Endpoint | null> {
  const [row] = await query<Endpoint>(
    database,
    `select ${ENDPOINT} from webhook_endpoints where waba_id = ? and id = ?`,
    [wabaId, id],
  );
  return row ?? null;
}

/** For operators, who address endpoints of every tenant. */
export async function findEndpointForOperator(database: Database, id: string): Promise<Endpoint | null> {
  const [row] = await query<Endpoint>(database, `select ${ENDPOINT} from webhook_endpoints where id = ?`, [
    id,
  ]);
  return row ?? null;
}

/**
 * Sets an endpoint's mode as somebody wishes; false: the WABA has no such endpoint. What the breaker noted of the mode before is forgotten; opening forgets since when the endpoint fails, too.
 */
export async function setEndpointMode(
  database: Database,
  wabaId: string,
  change: { id: string; mode: 'open' | 'paused' | 'disabled'; reason: string | null },
): Promise<boolean> {
  const changed = await execute(
    database,
    `update webhook_endpoints
        set mode = :mode, mode_reason = :reason, version = version + 1, updated_at = now(),
            mode_changed_at = case when mode = :mode then mode_changed_at else now() end,
            next_probe_at = null, probe_failures = 0,
            failing_since = case when :mode = 'open' then null else failing_since end,
            failing_told = failing_told and :mode <> 'open'
      where waba_id = :wabaId and id = :id`,
    { wabaId, ...change },
  );
  return changed === 1;
}
