import type { EventType } from '../../../src/platform/event-type.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { execute, query, queryOne } from '../../../src/platform/postgres/sql.ts';
import { publicDeliveryId } from '../../../src/platform/public-ids.ts';
import { WABA } from '../api/api-harness.ts';
import { publishOne } from '../deliveries/event-fixtures.ts';

type MadeAttempt = {
  status?: number | null;
  errorClass?: string | null;
  errorMessage?: string | null;
  responseHeaders?: Record<string, string>;
  responseBody?: string;
  durationMs?: number;
};

type MadeDelivery = {
  eventId: string;
  type?: EventType;
  wabaId?: string;
  dataJson?: string;
  state?: 'pending' | 'delivered' | 'failed' | 'dropped';
  error?: string | null;
  attempts?: readonly MadeAttempt[];
  minutesAgo?: number;
};

/** Publishes an event to the endpoints of a WABA and writes down what came of it; returns the public delivery ids. */
export async function addDelivery(database: Database, made: MadeDelivery): Promise<string[]> {
  const { wabaId = WABA, type = 'message', state = 'delivered', error = null, minutesAgo = 1 } = made;
  const attempts = made.attempts ?? [{ status: 200 }];
  const at = new Date(Date.now() - minutesAgo * 60_000);
  const first = 'select min(phone_number_id) as id from phone_numbers where waba_id = :wabaId';
  const phoneNumberId = (await queryOne<{ id: string }>(database, first, { wabaId }))?.id ?? '';
  const dataJson = made.dataJson ?? '{"message":{"text":{"body":"Hello"}}}';
  const event = await publishOne(database, made.eventId, { wabaId, type, phoneNumberId, dataJson, at });
  const uuid = event.slice(4).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  const deliveries = await query<{ id: string; endpointId: string }>(
    database,
    'select id, endpoint_id as "endpointId" from deliveries where event_uuid = :uuid',
    { uuid },
  );
  for (const { id, endpointId } of deliveries) {
    for (const [index, attempt] of attempts.entries()) {
      await addAttempt(database, { wabaId, id, endpointId, number: index + 1, at, attempt });
    }
    const last = attempts.at(-1);
    const settled = { id, at, state, count: attempts.length, status: last?.status ?? null, error };
    await execute(
      database,
      `update deliveries set state = :state, attempts = :count, last_status_code = :status, last_error = :error,
              created_at = :at, finished_at = case when :state = 'pending' then null else cast(:at as timestamptz) end,
              next_attempt_at = case when :state = 'pending' and :count > 0 then now() + interval '2 minutes' end
        where id = :id`,
      settled,
    );
    if (state !== 'pending') {
      await execute(database, 'delete from delivery_queue where delivery_id = :id', { id });
    }
  }
  return deliveries.map(({ id }) => publicDeliveryId(id));
}

async function addAttempt(
  database: Database,
  {
    attempt,
    ...made
  }: { wabaId: string; id: string; endpointId: string; number: number; at: Date; attempt: MadeAttempt },
): Promise<void> {
  const { status = null, errorClass = null, errorMessage = null, durationMs = 83.4 } = attempt;
  const isAnswered = status !== null;
  await execute(
    database,
    `insert into attempts (delivery_id, attempt, waba_id, endpoint_id, started_at, duration_ms, dns_ms, connect_ms,
                           tls_ms, first_byte_ms, reused, status_code, error_class, error_message, url, remote_address,
                           user_agent, custom_headers, response_headers, response_body, worker)
     values (:id, :number, :wabaId, :endpointId, cast(:at as timestamptz) + :number * interval '5 s', :durationMs,
             4.1, 12.5, 21.9, :firstByteMs, false, :status, :errorClass, :errorMessage,
             'https://receiver.example/hook', '203.0.113.7', 'Heliograph/0.1.0', 'Authorization',
             cast(:responseHeaders as jsonb), :responseBody, 'host-1')`,
    {
      ...made,
      status,
      errorClass,
      errorMessage,
      durationMs,
      firstByteMs: isAnswered ? 39.2 : null,
      responseHeaders: isAnswered ? JSON.stringify(attempt.responseHeaders ?? { server: 'nginx' }) : null,
      responseBody: isAnswered ? Buffer.from(attempt.responseBody ?? 'ok') : null,
    },
  );
}

/** Counts attempts of an endpoint, as the worker does, hour by hour back from now. */
export async function addActivity(database: Database, endpointId: string, hours: number): Promise<void> {
  await execute(
    database,
    `insert into endpoint_minutes (endpoint_id, minute, successes, failures, total_ms)
     select :endpointId, date_trunc('minute', now()) - g * interval '1 hour', 20 + 7 * (g % 5), g % 4, 1900
       from generate_series(0, :hours) g on conflict do nothing`,
    { endpointId, hours: hours - 1 },
  );
}
