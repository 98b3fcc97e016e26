import { membersOf } from '../../platform/json/json-members.ts';
/** One stored payment event: the `data` of its body, and where it stands among those that came. */
export type PaymentReport = { data: Readonly<Record<string, unknown>>; position: number };

/** What the reports of one payment come to. */
export type PaymentState = {
  /** As upstream says it: `pending`, `captured`. */
  status: string | null;
  /** Of the report that says so, as it is in the event. */
  amount: unknown;
  currency: unknown;
  /** Seconds since 1970 as text, upstream's. */
  timestamp: string | null;
  /** The latest report of each transaction, the newest first, as upstream wrote them. */
  transactions: unknown[];
  /** The latest report of each refund, the newest first. */
  refunds: unknown[];
};

const FINAL_STATUSES = new Set(['captured', 'failed']);

/**
 * Reports come late, twice and in any order: what upstream dated last counts; of one second, what is final; then what
 * came last.
 */
export function paymentState(reports: readonly PaymentReport[]): PaymentState {
  const newestFirst = reports.toSorted(
    (a, b) =>
      secondsOf(b) - secondsOf(a) || Number(isFinal(b)) - Number(isFinal(a)) || b.position - a.position,
  );
  const [latest] = newestFirst;
  return {
    status: textOf(latest?.data.status),
    amount: latest?.data.amount,
    currency: latest?.data.currency,
    timestamp: textOf(latest?.data.timestamp),
    transactions: latestOfEach(newestFirst.map(({ data }) => data.transaction)),
    refunds: latestOfEach(newestFirst.flatMap(refundsOf)),
  };
}

function secondsOf({ data }: PaymentReport): number {
  const seconds = Number(data.timestamp);
  return Number.isFinite(seconds) ? seconds : 0;
}

function isFinal({ data }: PaymentReport): boolean {
  return FINAL_STATUSES.has(String(data.status));
}

/** Webhooks nest refunds in the payment, look-ups in the transaction. */
function refundsOf({ data }: PaymentReport): unknown[] {
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
