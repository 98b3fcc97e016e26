import type { ErasedTable } from '../../platform/erasing.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import { execute, query } from '../../platform/postgres/sql.ts';
import { type PreferenceChange, publishPreferences } from './preference-events.ts';

export const OPT_OUTS: ErasedTable = { table: 'opt_outs', count: 'optOuts', key: 'id' };

/**
 * Before customers lose their ids: who wanted no messages gets none either under an id that comes again, and nothing but a
 * salted hash of each id is kept for that. Returns how many are kept.
 */
export async function keepOptOuts(trx: Transaction, contactIds: readonly string[]): Promise<number> {
  const some = 'contact_id = any (:contactIds::bigint[])';
  await execute(
    trx,
    `delete from opt_outs where ${some} and (not is_stop or cardinality(opt_out_keys(contact_id)) = 0)`,
    { contactIds },
  );
  return await execute(
    trx,
    `update opt_outs set kept_keys = opt_out_keys(contact_id), contact_id = null, reason = null where ${some}`,
    { contactIds },
  );
}

/** SQL: the newest resume that is known of a row `o`. */
export const KNOWN_RESUME = 'greatest(o.resumed_at, case when not o.is_stop then o.reported_at end)';

/** SQL: the times of stops that are known of a row `o` and that no resume ended; an earlier release notes the first and the last alone. */
export const KNOWN_STOPS =
  "coalesce(o.stopped_at, '{}') || case when o.is_stop then array[o.since, o.reported_at] else '{}' end";

/** More than upstream reports of one customer: after a first refusal nothing is sent. */
const MAX_STOPS = 100;

/** SQL: an array of the earliest `at` of a text behind `from`; null: there is none. */
export function earliestStops(text: string): string {
  return `(select array_agg(at order by at)
             from (select distinct at from (select at from ${text}) as known order by at limit ${MAX_STOPS}) as earliest)`;
}

/**
 * Gives a contact what was kept of it, and what `otherId` has, who turned out to be the same person: of each kind at a number
 * the latest, with the beginning that all of them tell; before it one that says no messages at all, as no later one about marketing ends it. Where they did not say the same, what holds is published.
 */
export async function gatherOptOuts(
  trx: Transaction,
  contactId: string,
  otherId: string | null = null,
): Promise<void> {
  const theirs = `select id from opt_outs where contact_id in (:contactId, cast(:otherId as bigint))
    union all select id from opt_outs where kept_keys && opt_out_keys(:contactId)`;
  const gathered = await query<Omit<PreferenceChange, 'contactId'> & { wereTwo: boolean }>(
    trx,
    `with theirs as (select o.*, row_number() over (partition by phone_number_id, is_upstream order by (is_stop and scope = 'all') desc, reported_at desc, id) as n
                       from opt_outs o where id in (${theirs})),
          facts as (
            select o.phone_number_id, o.is_upstream, max(${KNOWN_RESUME}) as resumed_at, array_agg(s.at) as stops, bool_and(o.is_stop) <> bool_or(o.is_stop) as were_two
              from theirs o left join lateral unnest(${KNOWN_STOPS}) as s (at) on true
             group by o.phone_number_id, o.is_upstream having count(distinct o.id) > 1),
          dropped as (delete from opt_outs where id in (select id from theirs where n > 1)),
          told as (
            select k.id, k.is_stop, f.resumed_at, f.were_two,
                   ${earliestStops("unnest(f.stops) as s (at) where at > coalesce(f.resumed_at, '-infinity')")} as stops
              from theirs k join facts f on f.phone_number_id is not distinct from k.phone_number_id and f.is_upstream = k.is_upstream
             where k.n = 1)
     update opt_outs o set resumed_at = t.resumed_at, stopped_at = t.stops,
            since = case when t.is_stop then coalesce(t.stops[1], o.since) else o.since end
       from told t where o.id = t.id
     returning o.waba_id as "wabaId", o.phone_number_id as "phoneNumberId", o.scope, o.is_stop as "isStop", o.source, o.since,
               t.were_two as "wereTwo"`,
    { contactId, otherId },
  );
  await execute(
    trx,
    `update opt_outs set contact_id = :contactId, kept_keys = null
      where id in (${theirs}) and contact_id is distinct from :contactId`,
    { contactId, otherId },
  );
  const changes = gathered.flatMap(({ wereTwo, ...one }) => (wereTwo ? [{ ...one, contactId }] : []));
  await publishPreferences(trx, changes, otherId);
}
