import { ENDPOINT_SECRET } from '../../src/engine/endpoint/endpoint-secrets.ts';
import { newWebhookSecret } from '../../src/engine/endpoint/webhook-signature.ts';
import { enqueueDeliveries } from '../../src/engine/queue/enqueue.ts';
import type { Database } from '../../src/platform/postgres/database.ts';
import { execute, query } from '../../src/platform/postgres/sql.ts';
import { newQueuedRow } from './queued-rows.ts';
import { testSecretBox } from './test-accounts.ts';

/** Adds endpoints in one statement, each with this rate limit; returns their ids. */
export async function addEndpoints(
  database: Database,
  wabaId: string,
  { urls, ratePerSecond }: { urls: readonly string[]; ratePerSecond: number | null },
): Promise<string[]> {
  const ids = await query<{ id: string }>(
    database,
    `select nextval(pg_get_serial_sequence('webhook_endpoints', 'id')) as id
       from generate_series(1, cast(:count as integer))`,
    { count: urls.length },
  );
  const secret = newWebhookSecret();
  await execute(
    database,
    `insert into webhook_endpoints (id, waba_id, url, secret_sealed, rate_limit_per_second)
     select id, :wabaId, url, sealed, cast(:ratePerSecond as integer)
       from unnest(cast(:ids as bigint[]), cast(:urls as text[]), cast(:sealed as text[])) as e (id, url, sealed)`,
    {
      wabaId,
      ratePerSecond,
      ids: ids.map(({ id }) => id),
      urls,
      sealed: ids.map(({ id }) => testSecretBox.seal(secret, ENDPOINT_SECRET.place(id))),
    },
  );
  return ids.map(({ id }) => id);
}

const BATCH = 2_000;

/** Queues and logs a delivery with an event of its own for each of these endpoints; `lane` by its number. */
export async function queueEach(
  database: Database,
  wabaId: string,
  endpointIds: readonly string[],
  laneOf: (n: number) => string,
): Promise<void> {
  for (let from = 0; from < endpointIds.length; from += BATCH) {
    const rows = endpointIds
      .slice(from, from + BATCH)
      .map((id, n) => ({ ...newQueuedRow(id, laneOf(from + n)), wabaId }));
    await database.transaction(async (trx) => {
      await execute(
        trx,
        `with given as (
           select * from unnest(cast(:days as date[]), cast(:ids as uuid[]), cast(:endpointIds as bigint[]))
             as g (day, id, endpoint_id)
         ), published as (
           insert into events (day, id, waba_id, tenant_id, phone_number_id, event_type, event_id, lane, sequence, body,
                               occurred_at)
           select day, id, :wabaId, 1, '1', 'message', 'wamid.' || id, 'lane', 1, '{}', now() from given
         )
         insert into deliveries (day, id, waba_id, endpoint_id, event_day, event_uuid)
         select day, id, :wabaId, endpoint_id, day, id from given`,
        {
          wabaId,
          days: rows.map((row) => row.deliveryDay),
          ids: rows.map((row) => row.deliveryId),
          endpointIds: rows.map((row) => row.endpointId),
        },
      );
      await enqueueDeliveries(trx, rows);
    });
  }
}
