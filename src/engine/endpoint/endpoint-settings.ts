import { type EventType, WINDOW_CLOSING, WINDOW_CLOSING_MINUTES } from '../../platform/event-type.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';
import type { EventFormat } from './event-format.ts';
import { STRICTEST_MODE, WORKFLOW_MODE, type WorkflowMode } from './workflow-mode.ts';

export type EndpointMode = 'open' | 'probing' | 'paused' | 'disabled';

/** Secrets are sealed. Null options mean the installation's setting. */
export type EndpointSettings = {
  id: string;
  wabaId: string;
  tenantId: string;
  url: string;
  version: number;
  secretSealed: string;
  previousSecretSealed: string | null;
  previousSecretExpiresAt: Date | null;
  asymmetricSignature: 'none' | 'ed25519';
  signingKeySealed: string | null;
  previousSigningKeySealed: string | null;
  previousSigningKeyExpiresAt: Date | null;
  customHeadersSealed: string | null;
  format: EventFormat;
  /** Null only for the format `heliograph`. */
  appSecretSealed: string | null;
  /** A chain in PEM; its key is there exactly when it is. */
  clientCertificate: string | null;
  clientKeySealed: string | null;
  targetsAllow: string[];
  targetsDeny: string[];
  timeoutMs: number | null;
  retryScheduleSeconds: number[] | null;
  maxInFlight: number | null;
  rateLimitPerSecond: number | null;
  deliveryWorkflows: WorkflowMode | null;
  alwaysWorkflowsFor: EventType[] | null;
};

/** Of every tenant; unknown ones are absent. */
export async function loadEndpointSettings(
  database: Database,
  endpointIds: readonly string[],
): Promise<EndpointSettings[]> {
  return await query<EndpointSettings>(
    database,
    `select id, w.waba_id as "wabaId", a.tenant_id as "tenantId", url, version, secret_sealed as "secretSealed",
            previous_secret_sealed as "previousSecretSealed",
            previous_secret_expires_at as "previousSecretExpiresAt",
            asymmetric_signature as "asymmetricSignature", signing_key_sealed as "signingKeySealed",
            previous_signing_key_sealed as "previousSigningKeySealed",
            previous_signing_key_expires_at as "previousSigningKeyExpiresAt",
            custom_headers_sealed as "customHeadersSealed", format, app_secret_sealed as "appSecretSealed",
            client_certificate as "clientCertificate", client_key_sealed as "clientKeySealed",
            a.webhook_allow as "targetsAllow", a.webhook_deny as "targetsDeny",
            timeout_ms as "timeoutMs", retry_schedule_seconds as "retryScheduleSeconds",
            max_in_flight as "maxInFlight", rate_limit_per_second as "rateLimitPerSecond",
            ${WORKFLOW_MODE} as "deliveryWorkflows", always_workflows_for as "alwaysWorkflowsFor"
       from webhook_endpoints w join wabas a on a.waba_id = w.waba_id where id = any (:endpointIds::bigint[])`,
    { endpointIds },
  );
}

/** The tenant's limits; null: none, and the workflows that the installation says. */
export type EndpointLimits = {
  maxInFlight: number | null;
  ratePerSecond: number | null;
  workflows: WorkflowMode | null;
};

export type ChangedEndpoint = EndpointLimits & {
  id: string;
  /** Unix time in ms; null: something else changed. */
  switchedOnMs: number | null;
};

export async function findChangedEndpoints(database: Database, seconds: number): Promise<ChangedEndpoint[]> {
  return await query<ChangedEndpoint>(
    database,
    `select id, max_in_flight as "maxInFlight", rate_limit_per_second as "ratePerSecond",
            ${STRICTEST_MODE} as workflows,
            case when h.mode = 'open' and h.mode_changed_at > created_at
                  and h.mode_changed_at > now() - :seconds * interval '1 second'
                 then cast(extract(epoch from h.mode_changed_at) * 1000 as float8) end as "switchedOnMs"
       from webhook_endpoints join endpoint_health h on h.endpoint_id = id
      where id = any (array(
        select id from webhook_endpoints where updated_at > now() - :seconds * interval '1 second' union
        select endpoint_id from endpoint_health where mode_changed_at > now() - :seconds * interval '1 second'))`,
    { seconds },
  );
}

/** Endpoints of a WABA that are to learn of windows that close within so many minutes. */
export type WindowWatch = { wabaId: string; tenantId: string; minutes: number; endpointIds: string[] };

export async function listWindowWatches(database: Database): Promise<WindowWatch[]> {
  return await query<WindowWatch>(
    database,
    `select e.waba_id as "wabaId", w.tenant_id as "tenantId", m.minutes, array_agg(e.id order by e.id) as "endpointIds"
       from webhook_endpoints e join wabas w on w.waba_id = e.waba_id
      cross join lateral (select coalesce(e.window_closing_minutes, ${WINDOW_CLOSING_MINUTES}) as minutes) as m
      where '${WINDOW_CLOSING}' = any (e.event_types) and e.format = 'heliograph'
      group by e.waba_id, w.tenant_id, m.minutes order by e.waba_id, m.minutes`,
  );
}

/** Events of one eventId, of one conversation, or all share a lane. */
export type OrderScope = 'event' | 'conversation' | 'endpoint';

export type Subscriber = {
  id: string;
  wabaId: string;
  /** Null: every type, also those to come; likewise numbers and, in `filter`, events. */
  eventTypes: EventType[] | null;
  phoneNumberIds: string[] | null;
  filter: string[] | null;
  format: EventFormat;
  orderScope: OrderScope;
  /** The types of messages that wait for others of their conversation; null: none does. */
  bufferTypes: string[] | null;
  mode: EndpointMode;
  version: number;
};

/** Switched-off endpoints are among them: their events wait. */
export async function endpointsOfWabas(
  database: Database,
  wabaIds: readonly string[],
): Promise<Subscriber[]> {
  return await query<Subscriber>(
    database,
    `select id, waba_id as "wabaId", event_types as "eventTypes", phone_number_ids as "phoneNumberIds",
            filter, format, order_scope as "orderScope",
            case when buffer_seconds > 0 then coalesce(buffer_types, '{text}') end as "bufferTypes", h.mode, version
       from webhook_endpoints join endpoint_health h on h.endpoint_id = id where waba_id = any (:wabaIds::text[]) order by id`,
    { wabaIds },
  );
}

/** WABAs without any are absent. */
export async function countEndpoints(
  database: Database,
  wabaIds: readonly string[],
): Promise<Map<string, number>> {
  const rows = await query<{ wabaId: string; count: number }>(
    database,
    `select waba_id as "wabaId", count(*)::integer as count from webhook_endpoints
      where waba_id = any (:wabaIds::text[]) group by waba_id`,
    { wabaIds },
  );
  return new Map(rows.map(({ wabaId, count }) => [wabaId, count]));
}
