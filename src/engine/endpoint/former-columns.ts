import type { Transaction } from '../../platform/postgres/database.ts';
import { execute } from '../../platform/postgres/sql.ts';

// The release before this one reads the state of an endpoint in columns of webhook_endpoints. What it must see of this one is written there
// too; the next release deletes this file (migration 0025).

/** After a change of mode. Settings that others have locked are left as they are: nothing that notes attempts waits for them. */
export async function carryMode(trx: Transaction, endpointId: string): Promise<void> {
  await execute(
    trx,
    `update webhook_endpoints w
        set mode = h.mode, mode_reason = h.mode_reason, mode_changed_at = h.mode_changed_at, failing_since = h.failing_since,
            failing_notified = h.failing_notified, next_probe_at = h.next_probe_at, probe_failures = h.probe_failures
       from endpoint_health h
      where h.endpoint_id = w.id
        and w.id = any (array(select id from webhook_endpoints where id = :endpointId for no key update skip locked))`,
    { endpointId },
  );
}

/** After heads were parked or returned; the endpoints are locked. */
export async function carryParked(trx: Transaction, endpointIds: readonly string[]): Promise<void> {
  await execute(
    trx,
    `update webhook_endpoints w set has_parked = h.has_parked from endpoint_health h
      where h.endpoint_id = w.id and w.id = any (cast(:endpointIds as bigint[])) and w.has_parked <> h.has_parked`,
    { endpointIds },
  );
}
