import type { ErasedTable } from '../../platform/erasing.ts';
import type { GraphClient } from '../../platform/graph/graph-client.ts';
import { columnsOf } from '../../platform/postgres/arrays.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { deleteUpTo, execute } from '../../platform/postgres/sql.ts';

const DAY_MS = 86_400_000;

/** Upstream's reports of a day change while late statuses come. */
const REPORTED_DAYS = 9;

const ASKED_EVERY_MS = 20 * 3_600_000;

/** Notes that upstream is asked now for what it charges a WABA; false: it was asked within the day. */
async function beginCosts(database: Database, wabaId: string): Promise<boolean> {
  const began = await execute(
    database,
    `update wabas set costs_asked_at = now()
      where waba_id = :wabaId and coalesce(costs_asked_at < now() - :everyMs * interval '1 millisecond', true)`,
    { wabaId, everyMs: ASKED_EVERY_MS },
  );
  return began === 1;
}

/** Once a day, copies what upstream reports that it charges for the last days, in place of what it reported before. Throws GraphError. */
export async function copyCosts(
  database: Database,
  wabaId: string,
  { client, token }: { client: Pick<GraphClient, 'readPricing'>; token: string },
): Promise<void> {
  if (!(await beginCosts(database, wabaId))) return;
  const to = new Date();
  const from = new Date((Math.floor(to.getTime() / DAY_MS) + 1 - REPORTED_DAYS) * DAY_MS);
  const { currency, points } = await client.readPricing(wabaId, { from, to, token });
  const rows = points.filter(({ startMs }) => startMs >= from.getTime() && startMs <= to.getTime());
  await database.transaction(async (trx) => {
    const gone = `delete from usage_costs where waba_id = :wabaId and day >= cast(:from as date)`;
    await execute(trx, gone, { wabaId, from: from.toISOString().slice(0, 10) });
    await execute(
      trx,
      `insert into usage_costs (waba_id, day, phone_number_id, category, pricing_type, country, volume, cost, currency, reported_at)
       select :wabaId, (to_timestamp(g.start_ms / 1000) at time zone 'utc')::date, coalesce(p.id, ''),
              lower(g.category), lower(g.pricing_type), upper(g.country), sum(g.volume), sum(g.cost), :currency, now()
         from unnest(:startMs::float8[], :displayPhoneNumber::text[], :category::text[], :pricingType::text[], :country::text[],
                     :volume::bigint[], :cost::numeric[])
              as g (start_ms, display_phone_number, category, pricing_type, country, volume, cost)
         left join lateral (select min(phone_number_id) as id from phone_numbers
                             where waba_id = :wabaId
                               and regexp_replace(display_phone_number, '\\D', '', 'g') = g.display_phone_number) as p on true
        group by 2, 3, 4, 5, 6`,
      {
        ...columnsOf(
          rows,
          'startMs',
          'displayPhoneNumber',
          'category',
          'pricingType',
          'country',
          'volume',
          'cost',
        ),
        wabaId,
        currency,
      },
    );
  });
}

export const USAGE_COSTS: ErasedTable = {
  table: 'usage_costs',
  count: 'usageDays',
  key: 'waba_id, day, phone_number_id, category, pricing_type, country',
};

/** Tenants look back for 13 months, and for as long at a whole month. */
const KEPT_DAYS = 430;

/** SQL: a day that is kept no longer. */
export const OLD_USAGE_DAY = `day < (now() at time zone 'utc')::date - ${KEPT_DAYS}`;

/** Forgets up to `limit` reports of days that are over for long; returns how many. */
export async function forgetOldCosts(database: Database, limit: number): Promise<number> {
  return await deleteUpTo(database, limit, 'usage_costs', OLD_USAGE_DAY);
}
