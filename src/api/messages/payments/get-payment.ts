import { type Static, Type } from 'typebox';
import {
  listOrderMessages,
  listPaymentReports,
  type OrderMessage,
  type PaymentReport,
  paymentState,
} from '../../../features/messages/payments.ts';
import { isMembers } from '../../../platform/json/json-members.ts';
import { publicEventId } from '../../../platform/public-ids.ts';
import { ApiError, notFound } from '../../errors/api-error.ts';
import type { ExternalContext } from '../../external/external-app.ts';
import {
  AnyObject,
  closed,
  dateTime,
  nullable,
  optionalParameter,
  parameter,
  text,
  upstreamObject,
  upstreamText,
} from '../../external/schema-kit.ts';
import { callUpstream } from '../../external/upstream-calls.ts';
import { restOperation } from '../../operations/operation.ts';

const Payment = Type.Object({
  referenceId: text('order-7'),
  phoneNumberId: text('800000000000221'),
  status: nullable(Type.String(), 'captured'),
  amount: Type.Optional(upstreamObject({ value: 21_000, offset: 100 })),
  currency: Type.Optional(text('INR')),
  updatedAt: nullable(dateTime(), '2026-09-21T14:14:20.000Z'),
  transactions: Type.Array(
    upstreamObject({
      id: 'order_Mx1',
      pg_transaction_id: 'pay_Mx2',
      type: 'razorpay',
      status: 'success',
      created_timestamp: 1_790_000_000,
      updated_timestamp: 1_790_000_060,
    }),
  ),
  refunds: Type.Array(AnyObject, { examples: [[]] }),
  serviceMessageId: nullable(Type.String(), '4711'),
  conversationId: nullable(Type.String(), '42'),
  events: Type.Array(
    Type.Object({
      id: text('evt_019aa3f2c0de7abc8def0123456789ab'),
      eventId: text('payment:order-7:order_Mx1:captured'),
      status: nullable(Type.String(), 'captured'),
      createdAt: dateTime('2026-09-21T14:14:21.120Z'),
    }),
  ),
  upstream: Type.Optional(Type.Object({ askedAt: dateTime(), payments: Type.Array(AnyObject) })),
});

const PaymentQuery = closed({
  phoneNumberId: optionalParameter(
    upstreamText(128),
    'Which number’s payment, where several used the reference id. Left out: the one with the latest payment.',
    '800000000000221',
  ),
  refresh: optionalParameter(Type.Enum(['true', 'false']), '`true` asks upstream as well.', 'true'),
  paymentConfiguration: optionalParameter(
    Type.String({ pattern: '^[^\\u0000/]{1,256}$' }),
    'The configuration to look under. Left out: the one that the order message names.',
    'razorpay-main',
  ),
});

/** The newest are enough for the state; each attempt of a customer has a few. */
const MAX_REPORTS = 200;

const PaymentParams = Type.Object({
  referenceId: parameter(Type.String(), '`reference_id` of the order message.', 'order-7'),
});

export const getPayment = restOperation({
  id: 'getPayment',
  method: 'GET',
  path: '/api/external/payments/:referenceId',
  scope: 'read',
  summary: 'Get a payment',
  description:
    'The state of the payment that an `order_details` message asked for, from the `payment` events of the WABA: the ' +
    'report with the latest upstream date counts. `transactions` and `refunds` contain the latest report of each, the newest first, as ' +
    'upstream wrote them. Without a report `status` is null. Webhooks alone are no proof of a payment: with ' +
    '`refresh=true` upstream is asked, and `upstream.payments` contains its response; the events stay unchanged.',
  tag: 'Payments',
  errors: [
    'payment_configuration_required',
    'upstream_refused',
    'access_token_missing',
    'upstream_unavailable',
  ],
  params: PaymentParams,
  query: PaymentQuery,
  answers: { 200: { schema: Payment, description: 'The payment.' } },
  run: async (call, input) => {
    const { wabaId } = call;
    const { referenceId } = input;
    const { phoneNumberId = null, refresh, paymentConfiguration = null } = input;
    const { view, order } = await findPayment(call, wabaId, referenceId, phoneNumberId);
    if (refresh !== 'true') return view;
    const configuration = paymentConfiguration ?? order?.configuration ?? null;
    if (configuration === null) {
      throw new ApiError('payment_configuration_required', { param: 'paymentConfiguration' });
    }
    const askedAt = new Date();
    const payments = await callUpstream(call, wabaId, (client, token) =>
      client.lookUpPayment({ phoneNumberId: view.phoneNumberId, configuration, referenceId, token }),
    );
    return { ...view, upstream: { askedAt, payments: payments.filter(isMembers) } };
  },
});

const MAX_REFERENCE_CHARS = 512;

async function findPayment(
  { database }: Pick<ExternalContext, 'database'>,
  wabaId: string,
  referenceId: string,
  phoneNumberId: string | null,
): Promise<{ view: PaymentView; order: OrderMessage | null }> {
  if (referenceId.length > MAX_REFERENCE_CHARS || referenceId.includes('\0')) throw notFound();
  const [reports, orders] = await Promise.all([
    listPaymentReports(database, wabaId, referenceId, MAX_REPORTS),
    listOrderMessages(database, wabaId, referenceId),
  ]);
  const view = paymentView({ referenceId, phoneNumberId, reports, orders });
  if (view === null) throw notFound();
  return { view, order: orders.find((one) => one.phoneNumberId === view.phoneNumberId) ?? null };
}

type PaymentView = Static<typeof Payment>;

type Members = Record<string, unknown>;

type Reported = { report: PaymentReport; data: Members };

/** Null when nothing is known. A reference id is a number's own: of several numbers the one asked for counts, or the one with the latest payment. */
function paymentView(known: {
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
    updatedAt: state.updatedAt?.toISOString() ?? null,
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
