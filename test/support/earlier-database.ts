import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import pg from 'pg';
import { ENDPOINT_SECRET } from '../../src/engine/endpoint/endpoint-secrets.ts';
import { newWebhookSecret } from '../../src/engine/endpoint/webhook-signature.ts';
import { shardOf } from '../../src/engine/inbox/shards.ts';
import type { Database, DatabasePool } from '../../src/platform/postgres/database.ts';
import { execute, query, queryOnly } from '../../src/platform/postgres/sql.ts';
import { dayOfUuidV7, uuidV7 } from '../../src/platform/public-ids.ts';
import { testSecretBox } from './test-accounts.ts';
import { testDatabase } from './test-database.ts';

const FUNCTIONS = new URL('../fixtures/earlier-database/functions.sql', import.meta.url);
const SCHEMA = new URL('../../src/platform/postgres/migrations/schema.sql', import.meta.url);

/** As `migrate` of that day left it, with the texts that it noted. */
const NOTES = `
  create table schema_migrations (
    id serial primary key, name varchar(255), batch integer, migration_time timestamptz);
  create table schema_migrations_lock (index serial primary key, is_locked integer);
  insert into schema_migrations (name, batch, migration_time) values ('0001-baseline', 1, now());
  insert into schema_migrations_lock (is_locked) values (0);
  insert into schema_files (name, sha256) values
    ('schema.sql', '2ea33bbd0be73cd2eaf901b4ee268eabcc8bacae2408a669f4d05067f0c1cce3'),
    ('functions.sql', '311de582002c4d6160415cda6cdeb9f2b4e2b43e4fba1af1c942a2c76eb38589')`;

export const WABA = '900000000000101';
const NUMBER = '800000000000111';

type EarlierDatabase = { database: DatabasePool; url: string; endpoints: string[] };

/** A database of 0.1.0, whose schema is the frozen one of 26 November 2026, with a tenant and endpoints, which have settings that are gone by now. */
export async function earlierDatabase(urls: readonly string[]): Promise<EarlierDatabase> {
  const { database, url } = await testDatabase();
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query('drop schema public cascade; create schema public');
  for (const file of [FUNCTIONS, SCHEMA]) await client.query(readFileSync(file, 'utf8'));
  await client.query(NOTES);
  await client.query(`
    insert into tenants (business_name) values ('Fixture Store');
    insert into wabas (waba_id, tenant_id) values ('${WABA}', 1);
    insert into phone_numbers (phone_number_id, waba_id, display_phone_number, verified_name)
    values ('${NUMBER}', '${WABA}', '12025550100', 'Fixture Store')`);
  await client.end();
  for (const [n, endpointUrl] of urls.entries()) {
    const id = String(n + 1);
    await execute(
      database,
      `insert into webhook_endpoints (waba_id, url, secret_sealed, signature_profile, delivery_workflows, max_retry_workflows)
       values (:waba, :endpointUrl, :secretSealed, 'github', 'failures', 3)`,
      {
        waba: WABA,
        endpointUrl,
        secretSealed: testSecretBox.seal(newWebhookSecret(), ENDPOINT_SECRET.place(id)),
      },
    );
  }
  return { database, url, endpoints: urls.map((_, n) => String(n + 1)) };
}

type Delivery = { id: string; day: string; endpoint: string; event: string; eventDay: string; lane: string };

/** What the next functions do is done as the processes of that day did it, by the functions of that day. */
type Published = { event: string; deliveries: Delivery[] };

type Publishing = {
  endpoints: readonly string[];
  lane: string;
  type?: string;
  /** Null: the event waits for its body. */
  body?: string | null;
  /** A worker claims the delivery to the first endpoint with this token, for this time. */
  claim?: { token: string; leaseMs: number };
};

export async function publish(database: Database, given: Publishing): Promise<Published> {
  const { endpoints, lane, type = 'status', claim } = given;
  const event = uuidV7(Date.now());
  const eventDay = dayOfUuidV7(event);
  const deliveries = endpoints.map((endpoint) => {
    const id = uuidV7(Date.now());
    return { id, day: dayOfUuidV7(id), endpoint, event, eventDay, lane };
  });
  const body = given.body === undefined ? `{"event":"${event}"}` : given.body;
  const all = <Value>(value: Value) => endpoints.map(() => value);
  await query(
    database,
    `select publish_events(
       array[:waba], array[:lane], array[1], array[1], array[0],
       array[:eventDay::date], array[:event::uuid], array[:waba], array[1::bigint], array[:number], array[:type],
       array[:lane], array[null::bigint], array[null::bigint], array[null::text], array[:body::bytea], now(),
       :wabas, :endpoints, :lanes, :days, :ids, :eventDays, :events, :released, :firsts, :claimed, :token, :leaseMs)`,
    {
      waba: WABA,
      number: NUMBER,
      lane,
      type,
      event,
      eventDay,
      body: body === null ? null : Buffer.from(body),
      endpoints,
      wabas: all(WABA),
      lanes: all(lane),
      days: deliveries.map(({ day }) => day),
      ids: deliveries.map(({ id }) => id),
      eventDays: all(eventDay),
      events: all(event),
      released: all(body !== null),
      firsts: all(true),
      claimed: endpoints.map((_, n) => claim !== undefined && n === 0),
      token: claim?.token ?? null,
      leaseMs: claim?.leaseMs ?? 0,
    },
  );
  return { event, deliveries };
}

type Outcome = { nextState: 'retrying' | null; delayMs?: number; run?: string; workflowId?: string };

/** Publishes an event and records an attempt for the first endpoint: delivered, or to be retried. */
export async function publishAttempted(
  database: Database,
  given: Omit<Publishing, 'claim'>,
  { nextState, delayMs, run, workflowId }: Outcome,
): Promise<Published> {
  const token = randomUUID();
  const published = await publish(database, { ...given, claim: { token, leaseMs: 60_000 } });
  const [delivery] = published.deliveries;
  if (delivery === undefined) throw new Error('nothing to attempt');
  const isDelivered = nextState === null;
  await query(
    database,
    `select settle_and_follow(
       array[:id::uuid], array[:token::uuid], array[:nextState], array[1], array[0], array[:delayMs::float8], array[:run],
       array[:day::date], array[:day::date], array[:logState], array[:error], array[:workflowId],
       array[:waba], array[:endpoint::bigint], array[now()], array[5::float8], array[null::real], array[null::real],
       array[null::real], array[null::real], array[true], array[:status::integer], array[null::text], array[null::text],
       array['http://tenant.example'], array[null::text], array[null::text], array['{}'], array['\\x'::bytea],
       'a worker', 'delivery/', 'Heliograph', array[false], null, 0)`,
    {
      ...delivery,
      waba: WABA,
      token,
      nextState,
      delayMs: delayMs ?? null,
      run: run ?? null,
      workflowId: workflowId ?? null,
      logState: isDelivered ? 'delivered' : 'pending',
      error: isDelivered ? null : 'HTTP 503',
      status: isDelivered ? 200 : 503,
    },
  );
  return published;
}

/** The delivery blocked its lane for too long; the next of the lane becomes the head. */
export async function stepAside(database: Database, { id, day, endpoint, lane }: Delivery): Promise<void> {
  await database.transaction(async (trx) => {
    await execute(
      trx,
      `update delivery_queue set lane = 'aside/' || delivery_id, stepped_aside_at = clock_timestamp()
        where delivery_id = :id and state = 'retrying'`,
      { id },
    );
    await query(trx, 'select promote_next(array[:endpoint::bigint], array[:lane], null, null)', {
      endpoint,
      lane,
    });
    await execute(
      trx,
      'update deliveries set stepped_aside_at = clock_timestamp() where day = :day and id = :id::uuid',
      { id, day },
    );
  });
}

/** Changes the mode of an endpoint, which has its heads parked a minute later. */
export async function switchOff(database: Database, endpoint: string, mode: 'paused' | 'probing') {
  await execute(
    database,
    `update webhook_endpoints set mode = :mode, mode_changed_at = now() - interval '1 hour', has_parked = true,
            has_backlog = :mode = 'probing', failing_since = case when :mode = 'probing' then now() - interval '2 hours' end,
            next_probe_at = case when :mode = 'probing' then now() + interval '2 seconds' end
      where id = :endpoint`,
    { endpoint, mode },
  );
  await execute(
    database,
    `update delivery_queue set parked = true where endpoint_id = :endpoint and state = 'due'`,
    { endpoint },
  );
}

/** The order of an event that waits for its body, with the task that fetches the names of its products. */
export async function insertOrder(database: Database, { event, deliveries }: Published): Promise<void> {
  const [{ lane = '', eventDay = '' } = {}] = deliveries;
  const bindings = { waba: WABA, number: NUMBER, lane, event, eventDay };
  const cart = {
    parts: {
      eventId: lane,
      metadataJson: `{"phone_number_id":"${NUMBER}"}`,
      contactsJson: '[]',
      orderJson: `{"catalog_id":"${lane}"}`,
    },
    items: [{ retailerId: 'sku', quantityText: '2', itemPriceText: '30', currency: 'USD' }],
  };
  const { id } = await queryOnly<{ id: string }>(
    database,
    `with customer as (
       insert into contacts (waba_id, wa_id) values (:waba, '12025550143') returning id
     ), talk as (
       insert into conversations (waba_id, phone_number_id, contact_id) select :waba, :number, id from customer returning id
     ), message as (
       insert into messages (waba_id, phone_number_id, conversation_id, direction, upstream_id, type, content)
       select :waba, :number, id, 'inbound', 'wamid.CART', 'order', '{}' from talk returning id
     ), counted as (
       update tenants set last_order_number = 1 where id = 1
     )
     insert into orders (waba_id, message_id, phone_number_id, catalog_id, cart, event_day, event_uuid, number)
     select :waba, id, :number, :lane, :cart, :eventDay, :event::uuid, 1 from message returning id`,
    { ...bindings, cart: JSON.stringify(cart) },
  );
  await execute(
    database,
    `insert into workflow_tasks (workflow_id, workflow_type, waba_id, event_id, argument)
     values ('order/' || :id, 'enrichOrder', :waba, :lane, jsonb_build_object('wabaId', :waba::text, 'orderId', :id::text))`,
    { ...bindings, id },
  );
}

/** A replay of deliveries to one endpoint, of which the first `queued` are in the queue. */
export async function insertReplay(
  database: Database,
  deliveries: readonly Delivery[],
  { state, queued }: { state: 'running' | 'paused'; queued: number },
): Promise<string> {
  const [{ endpoint = '' } = {}] = deliveries;
  const selection = {
    deliveryIds: deliveries.map(({ id }) => id),
    eventIds: null,
    endpointId: endpoint,
    from: null,
    to: new Date(Date.now() + 60_000).toISOString(),
    eventTypes: null,
    states: null,
  };
  const rest = deliveries.slice(queued).map(({ id }) => ({ id: endpoint, nextId: id }));
  const cursor = { toId: uuidV7(Date.now() + 60_000), endpoints: rest.slice(0, 1), skipped: 0 };
  const { replay } = await queryOnly<{ replay: string }>(
    database,
    `insert into replays (waba_id, selection, state, total, queued, cursor, requested_by)
     values (:waba, :selection::jsonb, :state, :total, :queued, :cursor, 'a user') returning id as replay`,
    {
      waba: WABA,
      state,
      queued,
      total: deliveries.length,
      selection: JSON.stringify(selection),
      cursor: JSON.stringify(cursor),
    },
  );
  for (const delivery of deliveries.slice(0, queued)) await queueAgain(database, replay, delivery);
  if (state === 'paused') await suspend(database, replay);
  await execute(
    database,
    `insert into workflow_tasks (workflow_id, workflow_type, waba_id, event_id, argument)
     values ('replay/' || :replay, 'replayDeliveries', :waba, 'replay/' || :replay,
             jsonb_build_object('wabaId', :waba::text, 'replayId', :replay::text))`,
    { waba: WABA, replay },
  );
  return replay;
}

async function queueAgain(database: Database, replay: string, repeated: Delivery): Promise<void> {
  const id = uuidV7(Date.now());
  const bindings = { ...repeated, waba: WABA, replay, repeated: repeated.id, id, day: dayOfUuidV7(id) };
  await execute(
    database,
    `insert into deliveries (day, id, waba_id, endpoint_id, event_day, event_uuid, replay_id, replay_of)
     values (:day, :id, :waba, :endpoint, :eventDay, :event, :replay, :repeated)`,
    bindings,
  );
  await query(
    database,
    `select enqueue_deliveries(array[:endpoint::bigint], array['replay/' || :replay || '/' || :lane], array[true], array[true],
       array[:day::date], array[:id::uuid], array[:eventDay::date], array[:event::uuid], array[true], array[false], null, 0)`,
    bindings,
  );
}

async function suspend(database: Database, replay: string): Promise<void> {
  await execute(
    database,
    `update delivery_queue set released = false, state = case when state = 'due' then 'suspended' else state end
      where released and state in ('queued', 'due')
        and delivery_id in (select id from deliveries where replay_id = :replay)`,
    { replay },
  );
}

/** A body that upstream sent, acknowledged and not yet ingested. */
export async function keepBody(database: Database, body: Buffer): Promise<void> {
  await execute(database, 'insert into inbox (waba_id, shard, body) values (:waba, :shard, :body)', {
    waba: WABA,
    shard: shardOf(WABA),
    body,
  });
}
