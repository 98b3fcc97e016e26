import type { Database, Transaction } from './database.ts';
import { execute, query } from './sql.ts';
import type { StoredEndpointOptions } from './webhook-endpoints.ts';

/** Sends an endpoint's deliveries, waiting ones included, to another URL. False: the WABA has no such endpoint. */
export async function setEndpointUrl(
  database: Database,
  wabaId: string,
  change: { id: string; url: string },
): Promise<boolean> {
  const changed = await execute(
    database,
    `update webhook_endpoints set url = :url, version = version + 1, updated_at = now()
      where waba_id = :wabaId and id = :id`,
    { wabaId, ...change },
  );
  return changed === 1;
}

/** Keeps others from changing an endpoint until the transaction ends. False: the WABA has no such endpoint. */
export async function lockEndpoint(trx: Transaction, wabaId: string, id: string): Promise<boolean> {
  const rows = await query(
    trx,
    'select 1 from webhook_endpoints where waba_id = ? and id = ? for no key update',
    [wabaId, id],
  );
  return rows.length === 1;
}

/**
 * Writes all settings of an endpoint that has been locked. Another order scope is only noted as wanted: rows that
 * are queued already have their lanes, so it takes effect when nothing of the present scope is open.
 */
export async function saveEndpointOptions(
  trx: Transaction,
  wabaId: string,
  endpoint: StoredEndpointOptions & { id: string },
): Promise<void> {
  await execute(
    trx,
    `update webhook_endpoints
        set url = :url, description = :description, event_types = cast(:eventTypes as text[]),
            phone_number_ids = cast(:phoneNumberIds as text[]), custom_headers_sealed = :customHeadersSealed,
            retry_schedule_seconds = cast(:retryScheduleSeconds as integer[]), timeout_ms = :timeoutMs,
            signature_profile = :signatureProfile, max_in_flight = :maxInFlight,
            rate_limit_per_second = :rateLimitPerSecond, block_limit_seconds = :blockLimitSeconds,
            wanted_order_scope = nullif(cast(:orderScope as text), order_scope),
            version = version + 1, updated_at = now()
      where waba_id = :wabaId and id = :id`,
    { wabaId, ...endpoint },
  );
}

/** The sealed signing secret of an endpoint; null when the WABA has no such endpoint. */
export async function findEndpointSecret(
  database: Database,
  wabaId: string,
  endpointId: string,
): Promise<string | null> {
  const [row] = await query<{ secretSealed: string }>(
    database,
    'select secret_sealed as "secretSealed" from webhook_endpoints where waba_id = ? and id = ?',
    [wabaId, endpointId],
  );
  return row?.secretSealed ?? null;
}

/**
 * Gives an endpoint another secret. The present one signs too for `overlapHours`, and one before that no more.
 * Returns until when; null when there is no overlap.
 */
export async function replaceEndpointSecret(
  trx: Transaction,
  wabaId: string,
  change: { id: string; secretSealed: string; overlapHours: number },
): Promise<Date | null> {
  const [row] = await query<{ expiresAt: Date | null }>(
    trx,
    `update webhook_endpoints
        set previous_secret_sealed = case when cast(:overlapHours as float8) > 0 then secret_sealed end,
            previous_secret_expires_at =
              case when cast(:overlapHours as float8) > 0 then now() + cast(:overlapHours as float8) * interval '1 hour' end,
            secret_sealed = :secretSealed, version = version + 1, updated_at = now()
      where waba_id = :wabaId and id = :id
     returning previous_secret_expires_at as "expiresAt"`,
    { wabaId, ...change },
  );
  return row?.expiresAt ?? null;
}

/** Removes an endpoint; what is queued for it is not touched. Returns the transaction's id, null when there is none. */
export async function deleteEndpointRow(
  trx: Transaction,
  wabaId: string,
  id: string,
): Promise<string | null> {
  const [row] = await query<{ xid: string }>(
    trx,
    `with gone as (delete from webhook_endpoints where waba_id = ? and id = ? returning id),
          charts as (delete from endpoint_minutes using gone where endpoint_id = gone.id),
          failures as (delete from endpoint_failures using gone where endpoint_id = gone.id)
     select cast(pg_current_xact_id() as text) as xid from gone`,
    [wabaId, id],
  );
  return row?.xid ?? null;
}

/** Whether every transaction has ended that began before `xid` did, and so may not have seen what it changed. */
export async function isPast(database: Database, xid: string): Promise<boolean> {
  const [row] = await query<{ past: boolean }>(
    database,
    'select pg_snapshot_xmin(pg_current_snapshot()) > cast(? as xid8) as past',
    [xid],
  );
  return row?.past === true;
}
