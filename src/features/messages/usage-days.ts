import { makeLowWater } from '../../platform/low-water.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { inBatches } from '../../platform/postgres/partitions.ts';
import { deleteUpTo, query, queryValue } from '../../platform/postgres/sql.ts';
import { USAGE_METRICS as COUNTS, type UsageAlert } from '../accounts/usage-alerts.ts';
import { OLD_USAGE_DAY } from '../accounts/usage-costs.ts';

/** The order in which all lock rows of usage_days. */
const CELL = 'waba_id, day, phone_number_id, category, pricing_type, country';

const FOLD = `with gone as (
    delete from usage_changes where id = any (array(
      select id from usage_changes where id >= :fromId order by id limit :limit)) returning *
  ), added as (
    insert into usage_days as u (${CELL}, ${COUNTS.join(', ')})
    select ${CELL}, ${COUNTS.map((name) => `sum(${name})`).join(', ')} from gone
     where exists (select from wabas w where w.waba_id = gone.waba_id) group by ${CELL} order by ${CELL}
    on conflict (${CELL}) do update set ${COUNTS.map((name) => `${name} = u.${name} + excluded.${name}`).join(', ')}
  )
  select count(*)::int as rows, coalesce(max(id), 0)::float8 as last from gone`;

/** An insert that is under way must end within this time, or its row waits for the next full look. */
const LAG_MS = 60_000;

/** Adds up what statements counted since the last time; what it returns is to be called by one process at a time. */
export function makeUsageFolding(database: Database): (ending: AbortSignal) => Promise<void> {
  const idsFrom = makeLowWater({ rest: { times: 20, leastMs: LAG_MS }, lagMs: LAG_MS });
  let end = 1;
  const foldSome = async (limit: number) => {
    const startMs = performance.now();
    const fromId = idsFrom.from() ?? 0;
    const [folded = { rows: 0, last: 0 }] = await query<{ rows: number; last: number }>(database, FOLD, {
      fromId,
      limit,
    });
    end = Math.max(end, folded.last + 1);
    const oldest = folded.rows < limit ? null : end;
    idsFrom.looked({ tookMs: performance.now() - startMs, seen: { end, oldest } });
    return folded.rows;
  };
  return async (ending) => await inBatches(foldSome, ending);
}

/** Forgets up to `limit` rows of days that are over for long; returns how many. */
export async function forgetOldUsage(database: Database, limit: number): Promise<number> {
  return await deleteUpTo(database, limit, 'usage_days', OLD_USAGE_DAY);
}

/** The housekeeping step that folds; counts are complete up to when it last succeeded. */
export const USAGE_STEP = 'usage counts';

/** Null: nothing has been added up yet. */
export async function usageAsOf(database: Database): Promise<Date | null> {
  const text = 'select succeeded_at from housekeeping_steps where step = :step';
  return await queryValue<Date>(database, text, { step: USAGE_STEP });
}

/** The groups that counts are kept by. */
export const USAGE_GROUPS = {
  phoneNumberId: 'phone_number_id',
  category: 'category',
  pricingType: 'pricing_type',
  country: 'country',
} as const;

export type UsageGroup = keyof typeof USAGE_GROUPS;

type UsageCounts = Record<(typeof COUNTS)[number], number>;

/** What upstream reported that it charges; `volume`: for how many messages. Null: it reported nothing. */
export type UsageCost = { amount: string; currency: string | null; volume: number; reportedAt: Date };

/** `day`: of a month its first. A group of null: upstream did not report it, or it has none, as received messages have no price. */
export type UsageRow = { day: string; tenantId?: string } & {
  [Group in UsageGroup]?: string | null;
} & UsageCounts & {
    cost: UsageCost | null;
  };

/** A WABA, all of a tenant, or all of the installation; `byTenant` counts each tenant apart. */
export type UsageOwner = { wabaId: string } | { tenantId: string | null; byTenant: boolean };

export type UsageQuestion = UsageOwner & {
  /** UTC days, YYYY-MM-DD, both included. */
  from: string;
  to: string;
  granularity: 'day' | 'month';
  groupBy: readonly UsageGroup[];
};

/** The counts of an owner by day, tenant and group, in their order; at most `limit` rows. Amounts of several currencies have no sum. */
export async function readUsage(
  database: Database,
  { from, to, granularity, groupBy, ...owner }: UsageQuestion,
  limit: number,
): Promise<UsageRow[]> {
  const day = granularity === 'day' ? 'day' : `date_trunc('month', day)::date`;
  const byTenant = 'byTenant' in owner && owner.byTenant;
  const groups = [
    ...(byTenant ? ['tenant_id as "tenantId"'] : []),
    ...groupBy.map((group) => `nullif(${USAGE_GROUPS[group]}, '') as "${group}"`),
  ];
  const places = [1, ...groups.map((_, n) => n + 2)].join(', ');
  const sums = COUNTS.map((name) => `coalesce(sum(${name}), 0)::float8 as ${name}`);
  const which = `${whichOf(owner)} day between cast(:from as date) and cast(:to as date)`;
  const rows = await query<
    Omit<UsageRow, 'cost'> & { [Member in keyof UsageCost]: UsageCost[Member] | null }
  >(
    database,
    `select ${[`to_char(${day}, 'YYYY-MM-DD') as day`, ...groups, ...sums].join(', ')},
            case when count(distinct currency) < 2 then trim_scale(sum(cost))::text end as amount, min(currency) as currency,
            coalesce(sum(volume), 0)::float8 as volume, max(reported_at) as "reportedAt"
       from (select ${CELL}, ${COUNTS.join(', ')}, null::numeric as cost, null as currency, null::bigint as volume,
                    null::timestamptz as reported_at from usage_days where ${which}
             union all
             select ${CELL}, ${COUNTS.map(() => 'null').join(', ')}, cost, currency, volume, reported_at
               from usage_costs where ${which}) as u ${byTenant ? 'join wabas using (waba_id)' : ''}
      group by ${places}
     having ${COUNTS.map((name) => `sum(${name}) <> 0`).join(' or ')} or sum(cost) is not null
      order by ${places} limit :limit`,
    { wabaId: null, tenantId: null, ...owner, from, to, limit },
  );
  return rows.map(({ amount, currency, volume, reportedAt, ...row }) => ({
    ...row,
    cost:
      amount === null || reportedAt === null ? null : { amount, currency, volume: volume ?? 0, reportedAt },
  }));
}

export type ReachedUsage = UsageAlert & {
  tenantId: string;
  /** The UTC day or month, as 2026-11-21 or 2026-11. */
  during: string;
};

/** The alerts of tenants whose count of the present day or month has reached the threshold. */
export async function listReachedUsage(database: Database, limit: number): Promise<ReachedUsage[]> {
  const counts = COUNTS.map((name) => `when '${name}' then d.${name}`).join(' ');
  return await query<ReachedUsage>(
    database,
    `select t.id as "tenantId", a.metric, a.period, a.threshold,
            to_char(now() at time zone 'utc', case a.period when 'day' then 'YYYY-MM-DD' else 'YYYY-MM' end) as during
       from tenants t
      cross join lateral jsonb_to_recordset(t.usage_alerts) as a (metric text, period text, threshold float8)
      where t.usage_alerts <> '[]' and t.removed_at is null and a.threshold <= (
              select sum(case a.metric ${counts} end) from usage_days d
               where d.waba_id = any (array(select w.waba_id from wabas w where w.tenant_id = t.id))
                 and d.day >= cast(date_trunc(a.period, now() at time zone 'utc') as date))
      order by t.id, a.metric, a.period limit :limit`,
    { limit },
  );
}

function whichOf(owner: UsageOwner): string {
  if ('wabaId' in owner) return 'waba_id = :wabaId and';
  if (owner.tenantId === null) return '';
  return 'waba_id = any (array(select w.waba_id from wabas w where w.tenant_id = cast(:tenantId as bigint))) and';
}
