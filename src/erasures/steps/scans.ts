import { type ErasedEvent, quietEvents } from '../../deliveries/erase-events.ts';
import { laneOf } from '../../deliveries/lanes.ts';
import {
  eraseEventsAndPayments,
  erasePaymentReports,
  eraseStatusRows,
} from '../../messages/erase-messages.ts';
import { byteaArray } from '../../platform/postgres/arrays.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';
import { eraseOrderingKeys } from '../../queue/ordering-keys.ts';
import { type ErasureStep, idUntils, type StepContext } from '../erasure-step.ts';

// What no id leads to, such as a status of a message that another system sent, is found by the customer's ids in its
// text, as upstream writes them: as a JSON string of their own. What came after the cut-off is a new customer's.

const ROWS_PER_BATCH = 1_000;

function needlesOf(context: StepContext): { needles: string[]; untils: string[] } {
  const untils = idUntils(context);
  return { needles: [...untils.keys()].map((id) => JSON.stringify(id)), untils: [...untils.values()] };
}

/** SQL: the column holds one of `:needles` and came within its time. */
function holdsOne(column: string, at: string, type: 'text' | 'bytea' = 'text'): string {
  return `exists (select from unnest(cast(:needles as ${type}[]), cast(:untils as timestamptz[])) as n (needle, until)
                   where ${at} <= until and position(needle in ${column}) > 0)`;
}

type StatusKey = { phoneNumberId: string; upstreamId: string; status: string; participant: string };

/** Statuses whose message is not stored, and of group messages those about the customer. */
export const statusScan: ErasureStep = {
  name: 'statuses',
  async erase(trx, context, after) {
    const sought = needlesOf(context);
    if (sought.needles.length === 0) return { after: null };
    const from: StatusKey =
      after === null ? { phoneNumberId: '', upstreamId: '', status: '', participant: '' } : JSON.parse(after);
    const page = await query<StatusKey & { isTheirs: boolean }>(
      trx,
      `select s.phone_number_id as "phoneNumberId", s.upstream_id as "upstreamId", s.status, s.participant,
              ${holdsOne('s.content', 's.received_at')} and (s.participant <> '' or not exists (select from messages m
                 where m.phone_number_id = s.phone_number_id and m.upstream_id = s.upstream_id)) as "isTheirs"
         from phone_numbers n cross join lateral (
           select * from message_statuses x where x.phone_number_id = n.phone_number_id
              and (x.phone_number_id, x.upstream_id, x.status, x.participant) > (:phoneNumberId, :upstreamId, :status, :participant)
            order by x.phone_number_id, x.upstream_id, x.status, x.participant limit ${ROWS_PER_BATCH}) as s
        where n.waba_id = :wabaId and n.phone_number_id >= :phoneNumberId
          and n.phone_number_id = coalesce(:only, n.phone_number_id)
        order by s.phone_number_id, s.upstream_id, s.status, s.participant limit ${ROWS_PER_BATCH}`,
      { ...from, ...sought, wabaId: context.wabaId, only: context.subject.phoneNumberId },
    );
    const theirs = page.filter(({ isTheirs }) => isTheirs);
    // The state of a group's message is not about one member of it.
    const whole = theirs.filter(({ participant }) => participant === '' || context.subject.isGroup);
    await eraseStatusRows(trx, theirs, whole);
    const keys = whole.map(({ upstreamId }) => laneOf(upstreamId));
    const orderingKeys = await eraseOrderingKeys(trx, context.wabaId, keys);
    const last = page.length < ROWS_PER_BATCH ? undefined : page.at(-1);
    const counts = { statuses: theirs.length, orderingKeys };
    return { after: last === undefined ? null : JSON.stringify({ ...last, isTheirs: undefined }), counts };
  },
};

/** Reports of payments, which are kept for longer than their events. */
export const paymentScan: ErasureStep = {
  name: 'payments',
  async erase(trx, context, after) {
    const sought = needlesOf(context);
    if (sought.needles.length === 0) return { after: null };
    const from: { lane: string; id: string } =
      after === null ? { lane: '', id: '00000000-0000-0000-0000-000000000000' } : JSON.parse(after);
    const page = await query<{ lane: string; id: string; isTheirs: boolean }>(
      trx,
      `select lane, event_uuid as id,
              phone_number_id = coalesce(:only, phone_number_id) and ${holdsOne('data', 'created_at')} as "isTheirs"
         from payment_reports
        where waba_id = :wabaId and (lane, event_uuid) > (:lane, cast(:id as uuid))
        order by lane, event_uuid limit ${ROWS_PER_BATCH}`,
      { ...from, ...sought, wabaId: context.wabaId, only: context.subject.phoneNumberId },
    );
    const theirs = page.filter(({ isTheirs }) => isTheirs);
    const paymentReports = await erasePaymentReports(
      trx,
      theirs.map(({ id }) => id),
    );
    await eraseOrderingKeys(
      trx,
      context.wabaId,
      theirs.map(({ lane }) => lane),
    );
    const last = page.length < ROWS_PER_BATCH ? undefined : page.at(-1);
    return {
      after: last === undefined ? null : JSON.stringify({ lane: last.lane, id: last.id }),
      counts: { paymentReports },
    };
  },
};

const EVENTS_PER_BATCH = 500;
const FIRST_EVENT: ErasedEvent = { day: '0001-01-01', id: '00000000-0000-0000-0000-000000000000' };

/** Every event of the WABA that is the customer's and was not found by a message. */
export const eventScan: ErasureStep = {
  name: 'events',
  prepare: async (context, after) => {
    const { theirs } = await nextEvents(context.database, context, after);
    await quietEvents(context, theirs);
  },
  async erase(trx, context, after) {
    const { theirs, next } = await nextEvents(trx, context, after);
    return { after: next, counts: await eraseEventsAndPayments(trx, context.wabaId, theirs) };
  },
};

async function nextEvents(
  database: Database,
  context: StepContext,
  after: string | null,
): Promise<{ theirs: ErasedEvent[]; next: string | null }> {
  const { subject, wabaId } = context;
  const { needles, untils } = needlesOf(context);
  const from: ErasedEvent = after === null ? FIRST_EVENT : JSON.parse(after);
  const holds = holdsOne('ev.body', 'ev.created_at', 'bytea');
  const page = await query<ErasedEvent & { isTheirs: boolean }>(
    database,
    `select day, id, case
              when conversation_id = any (cast(:conversationIds as bigint[])) then true
              when phone_number_id <> coalesce(:only, phone_number_id) then false
              when conversation_id is null then coalesce(${holds}, false)
              when event_type = 'status' and exists (select from conversations c
                     where c.id = ev.conversation_id and c.group_id is not null) then coalesce(${holds}, false)
              else false end as "isTheirs"
       from events ev
      where waba_id = :wabaId and id > :id and day >= cast(:day as date)
      order by id limit ${EVENTS_PER_BATCH}`,
    {
      ...from,
      wabaId,
      conversationIds: subject.conversationIds,
      needles: byteaArray(needles.map((needle) => Buffer.from(needle))),
      untils,
      only: subject.phoneNumberId,
    },
  );
  const theirs = page.filter(({ isTheirs }) => isTheirs);
  const last = page.length < EVENTS_PER_BATCH ? undefined : page.at(-1);
  const next = last === undefined ? null : JSON.stringify({ day: last.day, id: last.id });
  return { theirs, next };
}
