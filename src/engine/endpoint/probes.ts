import type { Transaction } from '../../platform/postgres/database.ts';
import { execute, query } from '../../platform/postgres/sql.ts';

/**
 * SQL of the expression `granted` (row_id): of the probes in the expression `picked` (endpoint_id, row_id), one each for the endpoints whose
 * probe is due, and which get no other within `leaseMs`.
 */
export const GRANT_PROBES = `free as (
       select endpoint_id from endpoint_health
        where endpoint_id = any (array(select endpoint_id from picked)) and mode = 'probing'
          and next_probe_at <= (select clock_timestamp())
          for no key update skip locked
     ), granted as (
       update endpoint_health h set next_probe_at = clock_timestamp() + :leaseMs * interval '1 millisecond'
         from picked p join free using (endpoint_id)
        where h.endpoint_id = p.endpoint_id
       returning p.row_id
     )`;

/** SQL: whether an endpoint's probe is due. */
export const HAS_PROBE = `exists (select from endpoint_health where mode = 'probing' and next_probe_at <= now())`;

/**
 * Makes the next probe of an endpoint due whose breaker is open. False: its breaker is closed, or a probe is under way,
 * which stays the only one. The endpoint is locked first, so that a probe that begins meanwhile is seen.
 */
export async function probeNow(trx: Transaction, endpointId: string): Promise<boolean> {
  await query(trx, 'select from endpoint_health where endpoint_id = :endpointId for no key update', {
    endpointId,
  });
  const changed = await execute(
    trx,
    `update endpoint_health h set next_probe_at = now()
      where endpoint_id = :endpointId and mode = 'probing' and next_probe_at > now()
        and not exists (select from delivery_queue q where q.endpoint_id = h.endpoint_id and q.state = 'claimed'
                           and q.lease_until > (select clock_timestamp()))`,
    { endpointId },
  );
  return changed === 1;
}
