import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { query, queryColumn, queryOnly } from '../../platform/postgres/sql.ts';
import type { EndpointMode } from './endpoint-settings.ts';

/** A change is visible later than it is dated. */
export const CHANGE_LAG_SECONDS = 30;

/** SQL: whether an endpoint was changed lately. */
export const HAS_CHANGED = ['webhook_endpoints where updated_at', 'endpoint_health where mode_changed_at']
  .map((dated) => `exists (select from ${dated} > now() - interval '${CHANGE_LAG_SECONDS + 1} seconds')`)
  .join(' or ');

/** How an endpoint changed by its own attempts. What users switch is not recorded. */
export type EndpointChange = {
  wabaId: string;
  endpointId: string;
  change: 'failing' | 'disabled' | 'recovered';
  /** As the change left the endpoint, which may have changed again since. */
  mode: EndpointMode;
  modeReason: string | null;
  /** Public: tenants read it. */
  reason: string;
  changedAt: Date;
};

/**
 * SQL that records a change of the endpoints whose health the statement's part `changed` updated (endpoint_id, mode, mode_reason), and so in its
 * transaction: an endpoint that fails and recovers between two looks has still done both.
 */
export const RECORD_CHANGE = `insert into endpoint_changes (endpoint_id, change, mode, mode_reason, reason)
  select endpoint_id, cast(:change as text), mode, mode_reason, cast(:reason as text) from changed`;

/** SQL: whether there are changes to take. */
export const HAS_ENDPOINT_CHANGE = 'exists (select from endpoint_changes)';

/** Removes up to `limit` changes, for a transaction that makes notices of them. Those that another process takes are left out. */
export async function takeEndpointChanges(trx: Transaction, limit: number): Promise<EndpointChange[]> {
  return await query<EndpointChange>(
    trx,
    `with chosen as materialized (
       select endpoint_id, id from endpoint_changes order by endpoint_id, id limit :limit for update skip locked
     ), taken as (
       delete from endpoint_changes c using chosen
        where c.endpoint_id = chosen.endpoint_id and c.id = chosen.id returning c.*)
     select e.waba_id as "wabaId", t.endpoint_id as "endpointId", t.change, t.mode, t.mode_reason as "modeReason", t.reason,
            t.changed_at as "changedAt"
       from taken t join webhook_endpoints e on e.id = t.endpoint_id order by t.endpoint_id, t.id`,
    { limit },
  );
}

/** When an open endpoint counts as failing: after some failures in a row, or one failure for long. */
const QUIET = { failures: 5, minutes: 1, hours: 1 };

const QUIET_CHANGES = {
  failing: {
    isNow: true,
    reason: 'every attempt fails; deliveries are tried again by the retry schedule',
    condition: `not h.failing_notified
        and h.failing_since < now() - ${QUIET.minutes} * interval '1 minute'
        and (h.failing_since < now() - ${QUIET.hours} * interval '1 hour'
             or (select sum(m.failures) from endpoint_minutes m
                  where m.endpoint_id = h.endpoint_id and m.minute >= date_trunc(case when m.is_hour then 'hour' else 'minute' end, h.failing_since))
                >= ${QUIET.failures})`,
  },
  recovered: {
    isNow: false,
    reason: 'an attempt succeeded',
    condition: 'h.failing_notified and h.failing_since is null',
  },
} as const;

/** In one look, what there is to do of endpoints that fail, or that do no longer. */
export async function findSlowWork(
  database: Database,
  disableAfterHours: number,
): Promise<{ disable: boolean; failing: boolean; recovered: boolean }> {
  const anyOpen = (condition: string) =>
    `exists (select from endpoint_health h where h.mode = 'open' and ${condition})`;
  return await queryOnly(
    database,
    `select exists (select from endpoint_health where mode in ('open', 'probing')
                       and failing_since < now() - :disableAfterHours * interval '1 hour') as disable,
            ${anyOpen(QUIET_CHANGES.failing.condition)} as failing,
            ${anyOpen(QUIET_CHANGES.recovered.condition)} as recovered`,
    { disableAfterHours },
  );
}

/** The others are noted in a later turn. */
const MOST_AT_ONCE = 1_000;

/** Notes which open endpoints count as failing though they have too few attempts to be stopped, and which no longer do. */
export async function noteQuietChanges(
  database: Database,
  change: 'failing' | 'recovered',
): Promise<string[]> {
  const { isNow, reason, condition } = QUIET_CHANGES[change];
  return await database.transaction(async (trx) => {
    const changed = await queryColumn<string>(
      trx,
      `with changed as (
         update endpoint_health set failing_notified = :isNow where endpoint_id = any (array(
           select h.endpoint_id from endpoint_health h where h.mode = 'open' and ${condition}
            limit ${MOST_AT_ONCE} for no key update skip locked))
         returning endpoint_id, mode, mode_reason)
       ${RECORD_CHANGE} returning endpoint_id`,
      { isNow, change, reason },
    );
    for (const id of changed) trx.notify('heliograph_endpoints', id);
    return changed;
  });
}
