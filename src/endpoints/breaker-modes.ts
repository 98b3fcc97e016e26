import type { Transaction } from '../platform/postgres/database.ts';
import { execute, query } from '../platform/postgres/sql.ts';
import { insertEndpointAlert } from './alerts/endpoint-alerts.ts';

/**
 * Stops deliveries to an endpoint that mostly fails: from now on only probes go out, the first after `probeAfterMs`.
 * False when it was not open any more.
 */
export async function startProbing(
  trx: Transaction,
  endpointId: string,
  { probeAfterMs, reason }: { probeAfterMs: number; reason: string },
): Promise<boolean> {
  const [row] = await query<{ waba_id: string }>(
    trx,
    `update webhook_endpoints
        set mode = 'probing', mode_reason = :reason, mode_changed_at = now(), version = version + 1, updated_at = now(),
            failing_since = coalesce(failing_since, now()), failing_told = true, probe_failures = 0,
            next_probe_at = clock_timestamp() + :probeAfterMs * interval '1 millisecond'
      where id = :endpointId and mode = 'open'
     returning waba_id`,
    { endpointId, probeAfterMs, reason },
  );
  if (row === undefined) return false;
  await insertEndpointAlert(trx, { wabaId: row.waba_id, endpointId, alert: 'failing', reason });
  return true;
}

/**
 * Grants the one probe that an endpoint gets at a time: whoever asks first when it is due. It must have an answer
 * within `leaseMs`, otherwise another may ask.
 */
export async function takeProbe(trx: Transaction, endpointId: string, leaseMs: number): Promise<boolean> {
  const granted = await execute(
    trx,
    `update webhook_endpoints set next_probe_at = clock_timestamp() + :leaseMs * interval '1 millisecond'
      where id = :endpointId and mode = 'probing' and next_probe_at <= clock_timestamp()`,
    { endpointId, leaseMs },
  );
  return granted === 1;
}

/** A probe got no success: the next one waits for `probeAfterMs`. */
export async function recordFailedProbe(
  trx: Transaction,
  endpointId: string,
  probeAfterMs: number,
): Promise<void> {
  await execute(
    trx,
    `update webhook_endpoints
        set probe_failures = probe_failures + 1,
            next_probe_at = clock_timestamp() + :probeAfterMs * interval '1 millisecond'
      where id = :endpointId and mode = 'probing'`,
    { endpointId, probeAfterMs },
  );
}

/** A probe succeeded: the endpoint takes deliveries again, those that waited first. */
export async function endProbing(trx: Transaction, endpointId: string): Promise<boolean> {
  const [row] = await query<{ waba_id: string }>(
    trx,
    `update webhook_endpoints
        set mode = 'open', mode_reason = null, mode_changed_at = now(), version = version + 1, updated_at = now(),
            failing_since = null, failing_told = false, probe_failures = 0, next_probe_at = null
      where id = ? and mode = 'probing'
     returning waba_id`,
    [endpointId],
  );
  if (row === undefined) return false;
  const reason = 'a probe was answered with success';
  await insertEndpointAlert(trx, { wabaId: row.waba_id, endpointId, alert: 'recovered', reason });
  return true;
}

/** Switches an endpoint off that is still at `version` (null: at whichever); its events wait. False when it was not on. */
export async function disableEndpoint(
  trx: Transaction,
  endpointId: string,
  { version, reason }: { version: number | null; reason: string },
): Promise<boolean> {
  const [row] = await query<{ waba_id: string }>(
    trx,
    `update webhook_endpoints
        set mode = 'disabled', mode_reason = :reason, mode_changed_at = now(), version = version + 1,
            updated_at = now(), next_probe_at = null
      where id = :endpointId and mode in ('open', 'probing')
        and (cast(:version as integer) is null or version = cast(:version as integer))
     returning waba_id`,
    { endpointId, version, reason },
  );
  if (row === undefined) return false;
  await insertEndpointAlert(trx, { wabaId: row.waba_id, endpointId, alert: 'disabled', reason });
  return true;
}
