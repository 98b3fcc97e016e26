import type { Database } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';
import { dayOfUuidV7, lowestUuidAt } from '../../platform/uuid-v7.ts';
import { answerCondition, type DeliveryFilter, deliveryConditions, eventOfType } from './delivery-filter.ts';
import type { DeliveryPosition } from './delivery-scan.ts';

/** Deliveries that may be what somebody looks for, the newest first. */
export type Candidates = {
  ids: string[];
  /** There may be more below this id; null: these are all. */
  nextBelow: string | null;
};

const HIGHEST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/**
 * Deliveries of a WABA (null: of all, for operators) with an attempt that failed, or that was answered so. Found along
 * the index of failed attempts, WABA by WABA.
 */
export async function failedDeliveries(
  database: Database,
  wabaId: string | null,
  { answer, sinceMs }: DeliveryFilter & { sinceMs: number },
  { belowId, limit }: { belowId: string | null; limit: number },
): Promise<Candidates> {
  const wanted = answer === null ? null : answerCondition(answer);
  const rows = await query<{ id: string; fits: boolean }>(
    database,
    `select a.delivery_id as id, ${wanted === null ? 'true' : `coalesce(${wanted.text}, false)`} as fits
       from ${wabaId === null ? 'wabas w' : '(select cast(:wabaId as text) as waba_id) as w'}
      cross join lateral (
        select delivery_id, status_code, error_class from attempts
         where waba_id = w.waba_id and (status_code between 200 and 299) is not true
           and delivery_id < cast(:belowId as uuid) and delivery_id >= cast(:sinceId as uuid)
           and day >= cast(:sinceDay as date)
         order by delivery_id desc limit cast(:limit as bigint)) as a
      order by a.delivery_id desc limit cast(:limit as bigint)`,
    {
      wabaId,
      belowId: belowId ?? HIGHEST_ID,
      sinceId: lowestUuidAt(sinceMs),
      sinceDay: dayOfUuidV7(lowestUuidAt(sinceMs)),
      limit,
      ...wanted?.bindings,
    },
  );
  const ids = [...new Set(rows.filter(({ fits }) => fits).map(({ id }) => id))];
  const last = rows.at(-1);
  if (rows.length < limit || last === undefined) return { ids, nextBelow: null };
  // The last delivery may have been cut off between two attempts: it is looked at again.
  return { ids: ids.filter((id) => id !== last.id), nextBelow: idAbove(last.id) };
}

/** Deliveries that are open, by the queue; null when there are more than `limit`. */
export async function openDeliveries(
  database: Database,
  wabaId: string | null,
  limit: number,
): Promise<Candidates | null> {
  const own = wabaId === null ? '' : 'where waba_id = :wabaId';
  const rows = await query<{ id: string }>(
    database,
    `select q.id from (select id from webhook_endpoints ${own}) as e
      cross join lateral (
        (select delivery_id as id from delivery_queue where endpoint_id = e.id and state <> 'queued'
          order by endpoint_id, lane limit cast(:limit as bigint))
        union all
        (select delivery_id from delivery_queue where endpoint_id = e.id and state = 'queued'
          order by endpoint_id, lane limit cast(:limit as bigint))) as q
      limit cast(:limit as bigint)`,
    { limit, wabaId },
  );
  if (rows.length >= limit) return null;
  const ids = rows.map(({ id }) => id).sort();
  return { ids: ids.reverse(), nextBelow: null };
}

/** Of these deliveries, in their order, those that fit the filter: at most `limit`. */
export async function fittingDeliveries(
  database: Database,
  wabaId: string | null,
  filter: DeliveryFilter,
  ids: readonly string[],
  limit: number,
): Promise<DeliveryPosition[]> {
  if (ids.length === 0) return [];
  const own = deliveryConditions(filter);
  const type = eventOfType(filter);
  const answer = filter.answer === null ? null : answerCondition(filter.answer);
  return await query<DeliveryPosition>(
    database,
    `select k.day, k.id, cast(extract(epoch from d.created_at) * 1000000 as bigint) as "atMicros"
       from unnest(cast(:days as date[]), cast(:ids as uuid[])) with ordinality as k (day, id, n)
      cross join lateral (select * from deliveries where day = k.day and id = k.id
                            ${wabaId === null ? '' : 'and waba_id = :wabaId'} offset 0) as d
      ${type.text}
      where ${own.text} ${
        answer === null
          ? ''
          : `and exists (select 1 from attempts a where a.day >= k.day and a.delivery_id = d.id and ${answer.text})`
      }
      order by k.n limit :limit`,
    {
      days: ids.map(dayOfUuidV7),
      ids,
      limit,
      wabaId,
      ...own.bindings,
      ...type.bindings,
      ...answer?.bindings,
    },
  );
}

/** The id that follows, so that "below" takes this one in. */
function idAbove(id: string): string {
  const next = (BigInt(`0x${id.replaceAll('-', '')}`) + 1n).toString(16).padStart(32, '0');
  return next.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
