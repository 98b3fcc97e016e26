import { takeEndpointChanges } from '../../engine/endpoint/endpoint-changes.ts';
import { listUntoldFailures, takeUntoldFailures } from '../../engine/endpoint/endpoint-failures.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { queryColumn } from '../../platform/postgres/sql.ts';
import { insertNotice } from './alert-notices.ts';

const CHANGES_AT_ONCE = 200;

/** Failures of an endpoint are reported at most once in so long. */
const FAILURES_EVERY_HOURS = 1;

/** Makes notices of what endpoints did by themselves. True: more of it waits. */
export async function notifyOfChanges(database: Database): Promise<boolean> {
  return await database.transaction(async (trx) => {
    const changes = await takeEndpointChanges(trx, CHANGES_AT_ONCE);
    for (const { wabaId, endpointId, change, reason, mode, modeReason, changedAt } of changes) {
      const asOf = { mode, modeReason, at: changedAt };
      await insertNotice(trx, { wabaId, endpointId, alert: change, reason, asOf });
    }
    return changes.length === CHANGES_AT_ONCE;
  });
}

/** Makes a notice of all deliveries of an endpoint that failed permanently since the notice before. */
export async function notifyOfFailures(database: Database): Promise<void> {
  const untold = await listUntoldFailures(database);
  if (untold.length === 0) return;
  const recent = new Set(await endpointsWithRecentNotice(database, untold));
  for (const { wabaId, endpointId } of untold.filter((one) => !recent.has(one.endpointId))) {
    await database.transaction(async (trx) => {
      const taken = await takeUntoldFailures(trx, endpointId);
      if (taken === null) return;
      const { failed, since } = taken;
      const count = `${failed.toLocaleString('en-US')} ${failed === 1 ? 'delivery has' : 'deliveries have'}`;
      const reason = `${count} failed permanently: no more attempts are made`;
      const details = { failed, since: since.toISOString() };
      await insertNotice(trx, { wabaId, endpointId, alert: 'deliveries_failed', reason, details });
    });
  }
}

async function endpointsWithRecentNotice(
  database: Database,
  endpoints: readonly { wabaId: string; endpointId: string }[],
): Promise<string[]> {
  return await queryColumn<string>(
    database,
    `select e.id from unnest(cast(:wabaIds as text[]), cast(:ids as bigint[])) as e (waba_id, id)
      where exists (select from alert_notices n
         where n.waba_id = e.waba_id and n.created_at > now() - ${FAILURES_EVERY_HOURS} * interval '1 hour'
           and n.endpoint_id = e.id and n.alert = 'deliveries_failed')`,
    { wabaIds: endpoints.map(({ wabaId }) => wabaId), ids: endpoints.map(({ endpointId }) => endpointId) },
  );
}
