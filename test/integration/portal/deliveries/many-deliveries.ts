import type { Database } from '../../../../src/platform/postgres/database.ts';

/** How many of the deliveries went how, one in so many. */
const ONE_IN = { failed: 997, retried: 211, orders: 5_003 };

/**
 * Fills the log with deliveries of the last two days for the endpoints of a WABA: nearly all of them delivered, a few
 * failed or delivered late, and rarely an order.
 */
export async function addManyDeliveries(
  database: Database,
  { wabaId, endpointIds, count }: { wabaId: string; endpointIds: readonly string[]; count: number },
): Promise<void> {
  for (let from = 1; from <= count; from += STEP) {
    const to = Math.min(count, from + STEP - 1);
    await database.transaction(async (trx) => {
      await trx.raw(insertion({ wabaId, endpointIds, count, from, to }));
    });
  }
  await database.raw('vacuum analyze events, deliveries, attempts');
}

/** Each statement has a time limit. */
const STEP = 100_000;

type Rows = { wabaId: string; endpointIds: readonly string[]; count: number; from: number; to: number };

function insertion({ wabaId, endpointIds, count, from, to }: Rows): string {
  return `
    create temporary table made as
    select g as n, at, (at at time zone 'utc')::date as day,
           cast(lpad(to_hex(cast(floor(extract(epoch from at) * 1000) as bigint)), 12, '0') || '7'
                || substr(md5('e' || g), 1, 3) || 'a' || substr(md5('e' || g), 4, 15) as uuid) as event_id,
           cast(lpad(to_hex(cast(floor(extract(epoch from at) * 1000) as bigint)), 12, '0') || '7'
                || substr(md5('d' || g), 1, 3) || 'b' || substr(md5('d' || g), 4, 15) as uuid) as delivery_id,
           (array[${endpointIds.join(', ')}])[1 + g % ${endpointIds.length}] as endpoint_id,
           case when g % ${ONE_IN.failed} = 0 then 'failed' else 'delivered' end as state
      from (select g, now() - g * (interval '2 days' / ${count}) as at from generate_series(cast(${from} as bigint), ${to}) g) s;
    insert into events (day, id, waba_id, tenant_id, phone_number_id, event_type, event_id, lane, sequence, body,
                        occurred_at, created_at)
    select day, event_id, '${wabaId}', 1, '800000000000111',
           case when n % ${ONE_IN.orders} = 0 then 'order' when n % 3 = 0 then 'message' else 'status' end,
           'wamid.' || n, 'wamid.' || n, 1, '{}', at, at from made;
    insert into deliveries (day, id, waba_id, endpoint_id, event_day, event_uuid, state, attempts, last_status_code,
                            last_error, created_at, finished_at)
    select day, delivery_id, '${wabaId}', endpoint_id, day, event_id, state,
           case when state = 'failed' then 3 when n % ${ONE_IN.retried} = 0 then 2 else 1 end,
           case when state = 'failed' then 503 else 200 end,
           case when state = 'failed' then 'the endpoint returned 503' end, at, at + interval '40 ms'
      from made;
    insert into attempts (day, delivery_id, attempt, waba_id, endpoint_id, started_at, duration_ms, first_byte_ms,
                          reused, status_code, url, user_agent, response_headers, response_body, worker)
    select day, delivery_id, a, '${wabaId}', endpoint_id, at + a * interval '5 s', 42, 40, true,
           case when state = 'failed' or a = 1 and n % ${ONE_IN.retried} = 0 then 503 else 200 end,
           'https://receiver.example/hook', 'Heliograph/0.1.0', '{"server":"test"}', 'ok', 'test'
      from made cross join generate_series(1, 3) a
     where a = 1 or state = 'failed' or (a = 2 and n % ${ONE_IN.retried} = 0);
    drop table made;
  `;
}
