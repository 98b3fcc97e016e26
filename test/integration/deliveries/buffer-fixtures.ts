import { releaseBuffers } from '../../../src/engine/deliveries/dispatch/release-buffers.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { takeIn } from '../../support/take-in.ts';

const WABA = '900000000000101';
const CUSTOMER = '12025550143';

type Settings = {
  seconds?: number | null;
  maxSeconds?: number | null;
  maxMessages?: number | null;
  types?: string[];
};

/** `seconds` are many where none is given: no machine is slow enough to let them pass. */
export async function letBuffer(database: Database, id: string, settings: Settings = {}): Promise<void> {
  const { seconds = 60, maxSeconds = null, maxMessages = null, types = null } = settings;
  await execute(
    database,
    `update webhook_endpoints
        set order_scope = 'conversation', buffer_seconds = :seconds, buffer_max_seconds = :maxSeconds,
            buffer_max_messages = :maxMessages, buffer_types = cast(:types as text[]), version = version + 1, updated_at = now()
      where id = :id`,
    { id, seconds, maxSeconds, maxMessages, types },
  );
}

type Written = { id: string; from?: string; type?: string; text?: string };

/** One upstream body with one message of a customer. */
function messageBody({ id, from = CUSTOMER, type = 'text', text = `text of ${id}` }: Written): Buffer {
  const content = type === 'text' ? { text: { body: text } } : { [type]: { latitude: 1, longitude: 2 } };
  const message = { from, id, timestamp: '1790000000', type, ...content };
  const value = {
    messaging_product: 'whatsapp',
    metadata: { display_phone_number: '12025550100', phone_number_id: '800000000000111' },
    contacts: [{ profile: { name: `Customer ${from}` }, wa_id: from }],
    messages: [message],
  };
  const entry = [{ id: WABA, changes: [{ value, field: 'messages' }] }];
  return Buffer.from(JSON.stringify({ object: 'whatsapp_business_account', entry }));
}

export async function write(database: Database, ...messages: Written[]): Promise<void> {
  await takeIn(database, ...messages.map(messageBody));
}

/** As if everything that waits had been queued so long ago. */
export async function age(database: Database, seconds: number): Promise<void> {
  await execute(
    database,
    `update delivery_queue
        set created_at = created_at - :seconds * interval '1 second',
            next_attempt_at = case when state = 'unreleased' then next_attempt_at - :seconds * interval '1 second'
                                   else next_attempt_at end`,
    { seconds },
  );
}

/** Looks until nothing is left to look at; returns how many heads became due. */
export async function release(database: Database): Promise<number> {
  for (let total = 0; ; ) {
    const { looked, released } = await releaseBuffers(database, 100);
    total += released;
    if (looked < 100) return total;
  }
}

export type Queued = {
  id: string;
  state: string;
  type: string;
  eventId: string;
  count: number;
};

/** The rows of the queue in their order. */
export async function queued(database: Database): Promise<Queued[]> {
  return await query<Queued>(
    database,
    `select q.delivery_id as id, q.state, e.event_type as type, e.event_id as "eventId",
            coalesce(cardinality(q.batch), 1) as count
       from delivery_queue q join events e on e.day = q.event_day and e.id = q.event_uuid order by q.position`,
  );
}

export type Logged = {
  id: string;
  eventId: string;
  state: string;
  attempts: number;
  statusCode: number | null;
  sentWith: string | null;
  body: string;
  log: number;
};

/** The log of the deliveries of messages, in the order in which they came. */
export async function logged(database: Database): Promise<Logged[]> {
  return await query<Logged>(
    database,
    `select d.id, e.event_id as "eventId", d.state, d.attempts, d.last_status_code as "statusCode", d.batch_id as "sentWith",
            convert_from(e.body, 'UTF8') as body, (select count(*)::integer from attempts a where a.delivery_id = d.id) as log
       from deliveries d join events e on e.day = d.event_day and e.id = d.event_uuid
      where e.event_type <> 'message.batch' and d.replay_id is null order by e.id`,
  );
}
