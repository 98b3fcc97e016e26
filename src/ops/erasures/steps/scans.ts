import { type ErasedEvent, quietEvents } from '../../../engine/deliveries/erase-events.ts';
import { laneOf } from '../../../engine/deliveries/lanes.ts';
import { eraseOrderingKeys } from '../../../engine/queue/ordering-keys.ts';
import {
  eraseEventsAndPayments,
  erasePaymentReports,
  eraseStatusRows,
} from '../../../features/messages/erase-messages.ts';
import { byteaArray } from '../../../platform/postgres/arrays.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { query } from '../../../platform/postgres/sql.ts';
import { type ErasureStep, idUntils, type StepContext } from '../erasure-step.ts';

// What no id leads to, such as a status of a message that another system sent, is found by the customer's ids in its
// text, as upstream writes them: as a separate JSON string. What came after the cut-off is a new customer's.

const ROWS_PER_BATCH = 1_000;

/** SQL: the column holds one of the customer's ids and came within its time. */
function holdsOne(column: string, at: string, needles: 'texts' | 'bytes' = 'texts'): string {
  const type = needles === 'texts' ? 'text' : 'bytea';
  return `exists (select from unnest(cast(:${needles} as ${type}[]), cast(:untils as timestamptz[])) as n (needle, until)
                   where ${at} <= until and position(needle in ${column}) > 0)`;
}

type Scan<Key> = {
  first: Key;
  /** Selects keys in their order, behind the one of this name, with "isTheirs"; `limit` at most. */
  text: string;
  limit: number;
};

async function nextTheirs<Key extends Record<string, string>>(
  database: Database,
  { first, text, limit }: Scan<Key>,
  context: StepContext,
  after: string | null,
): Promise<{ theirs: Key[]; next: string | null }> {
  const { subject, wabaId } = context;
  const untils = idUntils(context);
  const texts = [...untils.keys()].map((id) => JSON.stringify(id));
  const from: Key = after === null ? first : JSON.parse(after);
  const page = await query<Key & { isTheirs: boolean }>(database, text, {
    ...from,
    texts,
    bytes: byteaArray(texts.map((needle) => Buffer.from(needle))),
    untils: [...untils.values()],
    wabaId,
    only: subject.phoneNumberId,
    conversationIds: subject.conversationIds,
  });
  const last = page.length < limit ? undefined : page.at(-1);
  const next = last === undefined ? null : JSON.stringify({ ...last, isTheirs: undefined });
  return { theirs: page.filter(({ isTheirs }) => isTheirs), next };
}

type StatusKey = { phoneNumberId: string; upstreamId: string; status: string; participant: string };

const STATUSES: Scan<StatusKey> = {
  first: { phoneNumberId: '', upstreamId: '', status: '', participant: '' },
  limit: ROWS_PER_BATCH,
  text: `select s.phone_number_id as "phoneNumberId", s.upstream_id as "upstreamId", s.status, s.participant,
                ${holdsOne('s.content', 's.received_at')} and (s.participant <> '' or not exists (select from messages m
                   where m.phone_number_id = s.phone_number_id and m.upstream_id = s.upstream_id)) as "isTheirs"
           from phone_numbers n cross join lateral (
             select * from message_statuses x where x.phone_number_id = n.phone_number_id
                and (x.phone_number_id, x.upstream_id, x.status, x.participant) > (:phoneNumberId, :upstreamId, :status, :participant)
              order by x.phone_number_id, x.upstream_id, x.status, x.participant limit ${ROWS_PER_BATCH}) as s
          where n.waba_id = :wabaId and n.phone_number_id >= :phoneNumberId
            and n.phone_number_id = coalesce(:only, n.phone_number_id)
          order by s.phone_number_id, s.upstream_id, s.status, s.participant limit ${ROWS_PER_BATCH}`,
};

/** Statuses whose message is not stored, and of group messages those about the customer. */
export const statusScan: ErasureStep = {
  name: 'statuses',
  async erase(trx, context, after) {
    if (context.subject.ids.length === 0) return { after: null };
    const { theirs, next } = await nextTheirs(trx, STATUSES, context, after);
    // The state of a group's message is not about one member of it.
    const whole = theirs.filter(({ participant }) => participant === '' || context.subject.isGroup);
    await eraseStatusRows(trx, theirs, whole);
    const keys = whole.map(({ upstreamId }) => laneOf(upstreamId));
    const orderingKeys = await eraseOrderingKeys(trx, context.wabaId, keys);
    return { after: next, counts: { statuses: theirs.length, orderingKeys } };
  },
};

const FIRST_UUID = '00000000-0000-0000-0000-000000000000';

const PAYMENTS: Scan<{ lane: string; id: string }> = {
  first: { lane: '', id: FIRST_UUID },
  limit: ROWS_PER_BATCH,
  text: `select lane, event_uuid as id,
                phone_number_id = coalesce(:only, phone_number_id) and ${holdsOne('data', 'created_at')} as "isTheirs"
           from payment_reports
          where waba_id = :wabaId and (lane, event_uuid) > (:lane, cast(:id as uuid))
          order by lane, event_uuid limit ${ROWS_PER_BATCH}`,
};

/** Reports of payments, which are kept for longer than their events. */
export const paymentScan: ErasureStep = {
  name: 'payments',
  async erase(trx, context, after) {
    if (context.subject.ids.length === 0) return { after: null };
    const { theirs, next } = await nextTheirs(trx, PAYMENTS, context, after);
    const ids = theirs.map(({ id }) => id);
    const lanes = theirs.map(({ lane }) => lane);
    const paymentReports = await erasePaymentReports(trx, ids);
    await eraseOrderingKeys(trx, context.wabaId, lanes);
    return { after: next, counts: { paymentReports } };
  },
};

const EVENTS_PER_BATCH = 500;
const HOLDS_ID = holdsOne('ev.body', 'ev.created_at', 'bytes');

const EVENTS: Scan<ErasedEvent> = {
  first: { day: '0001-01-01', id: FIRST_UUID },
  limit: EVENTS_PER_BATCH,
  text: `select day, id, case
                when conversation_id = any (cast(:conversationIds as bigint[])) then true
                when phone_number_id <> coalesce(:only, phone_number_id) then false
                when conversation_id is null then coalesce(${HOLDS_ID}, false)
                when event_type = 'status' and exists (select from conversations c
                       where c.id = ev.conversation_id and c.group_id is not null) then coalesce(${HOLDS_ID}, false)
                else false end as "isTheirs"
           from events ev
          where waba_id = :wabaId and id > :id and day >= cast(:day as date)
          order by id limit ${EVENTS_PER_BATCH}`,
};

/** Every event of the WABA that is the customer's and was not found by a message. */
export const eventScan: ErasureStep = {
  name: 'events',
  prepare: async (context, after) => {
    const { theirs } = await nextTheirs(context.database, EVENTS, context, after);
    await quietEvents(context, theirs);
  },
  async erase(trx, context, after) {
    const { theirs, next } = await nextTheirs(trx, EVENTS, context, after);
    return { after: next, counts: await eraseEventsAndPayments(trx, context.wabaId, theirs) };
  },
};
