import { isSameTarget } from '../../platform/http/same-target.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { execute, hasRow, query, queryOne, queryOnly, queryValue } from '../../platform/postgres/sql.ts';
import type { EndpointMode } from './endpoint-settings.ts';
import { carryMode } from './former-columns.ts';
import type { Kind } from './setting.ts';
import { type StoredSettings, settingsOf } from './settings.ts';
import { WORKFLOW_MODE } from './workflow-mode.ts';

export type StoredEndpointOptions = StoredSettings & {
  url: string;
  customHeadersSealed: string | null;
  appSecretSealed: string | null;
};

export type Endpoint = StoredEndpointOptions & {
  id: string;
  wabaId: string;
  mode: EndpointMode;
  modeReason: string | null;
  modeChangedAt: Date;
  failingSince: Date | null;
  /** When its last run of failures ended with a success. */
  recoveredAt: Date | null;
  /** When retries are brought forward that wait because it was in trouble: it has accepted a delivery since. */
  backlogDueAt: Date | null;
  nextProbeAt: Date | null;
  probeFailures: number;
  /** The secret before the present one signs too until then; null: it does not. */
  previousSecretExpiresAt: Date | null;
  signingKeySealed: string | null;
  /** Null: the key before the present one does not sign any more. */
  previousSigningKeySealed: string | null;
  previousSigningKeyExpiresAt: Date | null;
  /** A chain in PEM. */
  clientCertificatePem: string | null;
  version: number;
  createdAt: Date;
  updatedAt: Date;
};

const SQL_TYPES = {
  text: 'text',
  choice: 'text',
  texts: 'text[]',
  lines: 'text[]',
  number: 'integer',
  numbers: 'integer[]',
} as const satisfies Record<Kind, string>;

const COLUMNS = settingsOf().map(([name, { kind }]) => ({
  name,
  column: name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
  parameter: `cast(:${name} as ${SQL_TYPES[kind]})`,
}));

const ENDPOINT = `id, waba_id as "wabaId", url, custom_headers_sealed as "customHeadersSealed",
  app_secret_sealed as "appSecretSealed",
  ${COLUMNS.map(({ name, column }) => `${name === 'deliveryWorkflows' ? WORKFLOW_MODE : column} as "${name}"`).join(', ')},
  h.mode, h.mode_reason as "modeReason", h.mode_changed_at as "modeChangedAt", h.failing_since as "failingSince",
  h.recovered_at as "recoveredAt", h.backlog_due_at as "backlogDueAt",
  h.next_probe_at as "nextProbeAt", h.probe_failures as "probeFailures",
  case when previous_secret_sealed is not null and previous_secret_expires_at > now()
       then previous_secret_expires_at end as "previousSecretExpiresAt",
  signing_key_sealed as "signingKeySealed",
  case when previous_signing_key_expires_at > now() then previous_signing_key_sealed end as "previousSigningKeySealed",
  case when previous_signing_key_expires_at > now()
       then previous_signing_key_expires_at end as "previousSigningKeyExpiresAt",
  client_certificate as "clientCertificatePem",
  version, created_at as "createdAt", greatest(updated_at, h.mode_changed_at) as "updatedAt"`;

const ENDPOINTS = 'webhook_endpoints join endpoint_health h on h.endpoint_id = id';

/** The sealed secret is bound to the id, so it is drawn first. */
export async function nextEndpointId(database: Database): Promise<string> {
  const { id } = await queryOnly<{ id: string }>(
    database,
    `select nextval(pg_get_serial_sequence('webhook_endpoints', 'id')) as id`,
  );
  return id;
}

/** Every other setting may be left to its default. */
export type NewEndpoint = Partial<StoredEndpointOptions> & {
  id: string;
  url: string;
  secretSealed: string;
  signingKeySealed?: string | null;
  urlSetByKey?: string | null;
  /** The name that the operator's program has for it. */
  ref?: string | null;
};

export async function insertEndpoint(
  database: Database,
  wabaId: string,
  endpoint: NewEndpoint,
): Promise<void> {
  const columns = COLUMNS.map(({ column }) => column).join(', ');
  const parameters = COLUMNS.map(({ parameter }) => parameter).join(', ');
  const fallbacks = settingsOf().map(([name, { fallback }]) => [name, fallback]);
  await execute(
    database,
    `insert into webhook_endpoints (id, waba_id, secret_sealed, signing_key_sealed, url, url_set_by_key, custom_headers_sealed, app_secret_sealed, ref, ${columns})
     values (:id, :wabaId, :secretSealed, :signingKeySealed, :url, :urlSetByKey, :customHeadersSealed, :appSecretSealed, :ref, ${parameters})`,
    {
      urlSetByKey: null,
      ref: null,
      customHeadersSealed: null,
      appSecretSealed: null,
      signingKeySealed: null,
      wabaId,
      ...Object.fromEntries(fallbacks),
      ...endpoint,
    },
  );
}

export async function listEndpoints(database: Database, wabaId: string): Promise<Endpoint[]> {
  return await query<Endpoint>(
    database,
    `select ${ENDPOINT} from ${ENDPOINTS} where waba_id = :wabaId order by id`,
    { wabaId },
  );
}

export async function findEndpoint(database: Database, wabaId: string, id: string): Promise<Endpoint | null> {
  return await queryOne<Endpoint>(
    database,
    `select ${ENDPOINT} from ${ENDPOINTS} where waba_id = :wabaId and id = :id`,
    { wabaId, id },
  );
}

/** The endpoint that the operator's program calls `ref`; null: there is none. */
export async function findEndpointIdByRef(
  database: Database,
  wabaId: string,
  ref: string,
): Promise<string | null> {
  const text = 'select id from webhook_endpoints where waba_id = :wabaId and ref = :ref';
  return await queryValue<string>(database, text, { wabaId, ref });
}

/** An endpoint of any WABA that receives at this URL; null: there is none. */
export async function findEndpointAt(database: Database, url: string): Promise<string | null> {
  const rows = await query<{ id: string; url: string }>(
    database,
    'select id, url from webhook_endpoints where position(cast(:host as text) in url) > 0',
    { host: new URL(url).hostname.replace(/\.$/, '') },
  );
  return rows.find((endpoint) => isSameTarget(endpoint.url, url))?.id ?? null;
}

export async function findEndpointForOperator(database: Database, id: string): Promise<Endpoint | null> {
  return await queryOne<Endpoint>(database, `select ${ENDPOINT} from ${ENDPOINTS} where id = :id`, {
    id,
  });
}

/**
 * The endpoint is locked. What the breaker noted of the mode before is forgotten; opening forgets since when the endpoint fails, too.
 */
export async function setEndpointMode(
  trx: Transaction,
  { id, ...change }: { id: string; mode: 'open' | 'paused' | 'disabled'; reason: string | null },
): Promise<void> {
  await execute(
    trx,
    `with changed as (update webhook_endpoints set version = version + 1, updated_at = now() where id = :id)
     update endpoint_health
        set mode = :mode, mode_reason = :reason,
            mode_changed_at = case when mode = :mode then mode_changed_at else now() end,
            next_probe_at = null, probe_failures = 0,
            failing_since = case when :mode = 'open' then null else failing_since end,
            failing_notified = false
      where endpoint_id = :id`,
    { id, ...change },
  );
  await carryMode(trx, id);
  trx.notify('heliograph_endpoints', id);
}

/** Until the transaction ends. False: the WABA has no such endpoint. */
export async function lockEndpoint(trx: Transaction, wabaId: string, id: string): Promise<boolean> {
  return await hasRow(
    trx,
    'select 1 from webhook_endpoints where waba_id = :wabaId and id = :id for no key update',
    { wabaId, id },
  );
}

/** The endpoint is locked, and where its order scope changes so are its lanes (order-scope.ts), which are empty. Each worker has limits of it. */
export async function saveEndpointOptions(
  trx: Transaction,
  wabaId: string,
  endpoint: StoredEndpointOptions & { id: string; urlSetByKey: string | null },
): Promise<void> {
  const settings = COLUMNS.map(({ column, parameter }) => `${column} = ${parameter}`);
  await execute(
    trx,
    `update webhook_endpoints
        set url = :url, url_set_at = case when url = :url then url_set_at else now() end,
            url_set_by_key = case when url = :url then url_set_by_key else cast(:urlSetByKey as bigint) end,
            custom_headers_sealed = :customHeadersSealed, app_secret_sealed = :appSecretSealed,
            ${settings.join(', ')},
            version = version + 1, updated_at = now()
      where waba_id = :wabaId and id = :id`,
    { wabaId, ...endpoint },
  );
  trx.notify('heliograph_endpoints', endpoint.id);
}

export async function findEndpointSecret(
  database: Database,
  wabaId: string,
  endpointId: string,
): Promise<string | null> {
  return await queryValue<string>(
    database,
    'select secret_sealed as "secretSealed" from webhook_endpoints where waba_id = :wabaId and id = :endpointId',
    { wabaId, endpointId },
  );
}

/** The present one signs too for `overlapHours`, and one before that no more. Returns until when; null when there is no overlap. */
export async function replaceEndpointSecret(
  trx: Transaction,
  wabaId: string,
  what: 'secret' | 'signing_key',
  change: { id: string; sealed: string; overlapHours: number },
): Promise<Date | null> {
  return await queryValue<Date>(
    trx,
    `update webhook_endpoints
        set previous_${what}_sealed = case when cast(:overlapHours as float8) > 0 then ${what}_sealed end,
            previous_${what}_expires_at =
              case when cast(:overlapHours as float8) > 0 then now() + cast(:overlapHours as float8) * interval '1 hour' end,
            ${what}_sealed = :sealed, version = version + 1, updated_at = now()
      where waba_id = :wabaId and id = :id
     returning previous_${what}_expires_at as "expiresAt"`,
    { wabaId, ...change },
  );
}

export async function setEndpointCertificate(
  trx: Transaction,
  wabaId: string,
  change: { id: string; pem: string | null; keySealed: string | null; expiresAt: Date | null },
): Promise<void> {
  await execute(
    trx,
    `update webhook_endpoints
        set client_certificate = :pem, client_key_sealed = :keySealed, client_certificate_expires_at = :expiresAt,
            version = version + 1, updated_at = now()
      where waba_id = :wabaId and id = :id`,
    { wabaId, ...change },
  );
}

/** After a change that holds for all endpoints of a WABA: processes that remember them read them again. Locks them in the order of their ids. */
export async function renewVersions(trx: Transaction, wabaId: string): Promise<void> {
  await execute(
    trx,
    `update webhook_endpoints set version = version + 1, updated_at = now()
      where id = any (array(select id from webhook_endpoints where waba_id = :wabaId order by id for no key update))`,
    { wabaId },
  );
}

/** Its queued deliveries are not touched. False: there is none. */
export async function deleteEndpointRow(trx: Transaction, wabaId: string, id: string): Promise<boolean> {
  return await hasRow(
    trx,
    `with gone as (delete from webhook_endpoints where waba_id = :wabaId and id = :id returning id),
          charts as (delete from endpoint_minutes using gone where endpoint_id = gone.id),
          failures as (delete from endpoint_failures using gone where endpoint_id = gone.id)
     select id from gone`,
    { wabaId, id },
  );
}

export type UrlSetByKey = {
  id: string;
  wabaId: string;
  tenantId: string;
  url: string;
  keyId: string;
  setAt: Date;
};

export async function listUrlsSetByKeys(
  database: Database,
  { days, limit }: { days: number; limit: number },
): Promise<UrlSetByKey[]> {
  return await query<UrlSetByKey>(
    database,
    `select e.id, e.waba_id as "wabaId", w.tenant_id as "tenantId", e.url, e.url_set_by_key as "keyId", e.url_set_at as "setAt"
       from webhook_endpoints e join wabas w on w.waba_id = e.waba_id
      where e.url_set_by_key is not null and e.url_set_at > now() - interval '1 day' * :days
      order by e.url_set_at limit :limit`,
    { days, limit },
  );
}
