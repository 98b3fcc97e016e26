import { paymentState } from '../../../messages/payments/payment-state.ts';
import type { OrderMessage, PaymentReport } from '../../../messages/payments.ts';
import { publicEventId } from '../../../platform/public-ids.ts';

type Members = Record<string, unknown>;

/** A payment as the API shows it. */
export type PaymentView = {
  referenceId: string;
  phoneNumberId: string;
  status: string | null;
  amount?: Members;
  currency?: string;
  updatedAt: string | null;
  transactions: Members[];
  refunds: Members[];
  serviceMessageId: string | null;
  conversationId: string | null;
  events: { id: string; eventId: string; status: string | null; createdAt: string }[];
};

type Reported = { report: PaymentReport; data: Members };

/**
 * What the reports and the order message of a payment come to; null when there are none. A reference id is a number's
 * own: of several numbers the one asked for counts, or the one that was heard of last.
 */
export function paymentView(known: {
  referenceId: string;
  phoneNumberId: string | null;
  reports: readonly PaymentReport[];
  orders: readonly OrderMessage[];
}): PaymentView | null {
  const { referenceId, reports, orders } = known;
  // A lane can be another key's: only the report tells.
  const reported = reports.map(reportedOf).filter(({ data }) => data.reference_id === referenceId);
  const phoneNumberId =
    known.phoneNumberId ?? reported.at(-1)?.report.phoneNumberId ?? orders.at(-1)?.phoneNumberId ?? null;
  const own = reported.filter(({ report }) => report.phoneNumberId === phoneNumberId);
  const order = orders.find((one) => one.phoneNumberId === phoneNumberId) ?? null;
  if (phoneNumberId === null || (own.length === 0 && order === null)) return null;
  const state = paymentState(own.map(({ data }, position) => ({ data, position })));
  return {
    referenceId,
    phoneNumberId,
    status: state.status,
    ...(isMembers(state.amount) && { amount: state.amount }),
    ...(typeof state.currency === 'string' && { currency: state.currency }),
    updatedAt: timeOf(state.timestamp),
    transactions: state.transactions.filter(isMembers),
    refunds: state.refunds.filter(isMembers),
    serviceMessageId: order?.messageId ?? null,
    conversationId: order?.conversationId ?? null,
    events: own.map(({ report, data }) => ({
      id: publicEventId(report.eventUuid),
      eventId: report.eventId,
      status: typeof data.status === 'string' ? data.status : null,
      createdAt: report.createdAt.toISOString(),
    })),
  };
}

function reportedOf(report: PaymentReport): Reported {
  return { report, data: JSON.parse(report.data) as Members };
}

/** Upstream's seconds since 1970; null for what is no time. */
function timeOf(timestamp: string | null): string | null {
  const time = new Date(Number(timestamp ?? Number.NaN) * 1_000);
  return Number.isFinite(time.getTime()) ? time.toISOString() : null;
}

function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
