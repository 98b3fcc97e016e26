import { laneOf } from '../../engine/deliveries/lanes.ts';
import { epochTimeOf } from '../../platform/json/epoch-time.ts';
import { membersOf } from '../../platform/json/json-members.ts';
import { columnsOf, textArray } from '../../platform/postgres/arrays.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { execute, query } from '../../platform/postgres/sql.ts';

export type PaymentReport = {
  eventUuid: string;
  phoneNumberId: string;
  eventId: string;
  createdAt: Date;
  data: string;
};

export type NewPaymentReport = Omit<PaymentReport, 'createdAt'> & { wabaId: string; lane: string };

export async function insertPaymentReports(
  trx: Transaction,
  reports: readonly NewPaymentReport[],
): Promise<void> {
  if (reports.length === 0) return;
  await execute(
    trx,
    `insert into payment_reports (event_uuid, waba_id, phone_number_id, lane, event_id, data)
     select * from unnest(:eventUuid::uuid[], :wabaId::text[], :phoneNumberId::text[], :lane::text[], :eventId::text[], :datas::text[])`,
    {
      ...columnsOf(reports, 'eventUuid', 'wabaId', 'phoneNumberId', 'lane', 'eventId'),
      datas: textArray(reports.map((report) => report.data)),
    },
  );
}

/** The oldest first; they may be about another payment, so compare their `reference_id`. */
export async function listPaymentReports(
  database: Database,
  wabaId: string,
  referenceId: string,
  limit: number,
): Promise<PaymentReport[]> {
  const rows = await query<PaymentReport>(
    database,
    `select event_uuid as "eventUuid", phone_number_id as "phoneNumberId", event_id as "eventId",
            created_at as "createdAt", data
       from payment_reports where waba_id = :wabaId and lane = :lane order by event_uuid desc limit :limit`,
    { wabaId, lane: laneOf(referenceId), limit },
  );
  return rows.reverse();
}

export type OrderMessage = {
  messageId: string;
  conversationId: string;
  phoneNumberId: string;
  configuration: string | null;
};

/** The newest message of each number, the newest last. */
export async function listOrderMessages(
  database: Database,
  wabaId: string,
  referenceId: string,
): Promise<OrderMessage[]> {
  return await query<OrderMessage>(
    database,
    `select * from (
       select distinct on (o.phone_number_id) o.message_id as "messageId", m.conversation_id as "conversationId",
              o.phone_number_id as "phoneNumberId", o.payment_configuration as configuration
         from outbound_messages o join messages m on m.id = o.message_id
        where o.waba_id = :wabaId and o.payment_reference = :referenceId
        order by o.phone_number_id, o.message_id desc) newest
      order by "messageId"`,
    { wabaId, referenceId },
  );
}

type DatedReport = { data: Readonly<Record<string, unknown>>; position: number };

type PaymentState = {
  /** As upstream says it: `pending`, `captured`. */
  status: string | null;
  /** Of the report that says so, as it is in the event. */
  amount: unknown;
  currency: unknown;
  updatedAt: Date | null;
  /** The latest report of each transaction, the newest first, as upstream wrote them. */
  transactions: unknown[];
  refunds: unknown[];
};

const FINAL_STATUSES = new Set(['captured', 'failed']);

/**
 * Reports come late, twice and in any order: what upstream dated last counts; of one second, what is final; then what
 * came last.
 */
export function paymentState(reports: readonly DatedReport[]): PaymentState {
  const newestFirst = reports.toSorted(
    (a, b) =>
      secondsOf(b) - secondsOf(a) || Number(isFinal(b)) - Number(isFinal(a)) || b.position - a.position,
  );
  const [latest] = newestFirst;
  return {
    status: textOf(latest?.data.status),
    amount: latest?.data.amount,
    currency: latest?.data.currency,
    updatedAt: epochTimeOf(textOf(latest?.data.timestamp)),
    transactions: latestOfEach(newestFirst.map(({ data }) => data.transaction)),
    refunds: latestOfEach(newestFirst.flatMap(refundsOf)),
  };
}

function secondsOf({ data }: DatedReport): number {
  return Math.floor((epochTimeOf(textOf(data.timestamp))?.getTime() ?? 0) / 1_000);
}

function isFinal({ data }: DatedReport): boolean {
  return FINAL_STATUSES.has(String(data.status));
}

/** Webhooks nest refunds in the payment, look-ups in the transaction. */
function refundsOf({ data }: DatedReport): unknown[] {
  const payment = membersOf(membersOf(data.raw).payment);
  return [payment.refunds, membersOf(data.transaction).refunds].flatMap((refunds) =>
    Array.isArray(refunds) ? refunds : [],
  );
}

/** The first of each id; what has no id is kept as it is. */
function latestOfEach(objects: readonly unknown[]): unknown[] {
  const seen = new Set<unknown>();
  return objects.filter((object) => {
    if (typeof object !== 'object' || object === null) return false;
    const { id } = object as { id?: unknown };
    if (id === undefined || !seen.has(id)) {
      seen.add(id);
      return true;
    }
    return false;
  });
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
