import { Type } from 'typebox';
import { listOrderMessages, listPaymentReports, type OrderMessage } from '../../../database/payments.ts';
import { ApiError, notFound } from '../../errors/api-error.ts';
import { accountOf } from '../../plugins/api-key-auth.ts';
import { SCOPES } from '../../plugins/key-scopes.ts';
import type { ExternalApp, ExternalContext } from '../external-app.ts';
import { nullable } from '../nullable.ts';
import { callUpstream } from '../upstream-calls.ts';
import { paymentDocs } from './payment-docs.ts';
import { type PaymentView, paymentView } from './payment-view.ts';

const Anything = Type.Object({}, { additionalProperties: true });

const Payment = Type.Object({
  referenceId: Type.String(),
  phoneNumberId: Type.String(),
  /** Null while nothing was reported. */
  status: nullable(Type.String()),
  amount: Type.Optional(Anything),
  currency: Type.Optional(Type.String()),
  updatedAt: nullable(Type.String({ format: 'date-time' })),
  transactions: Type.Array(Anything),
  refunds: Type.Array(Anything),
  serviceMessageId: nullable(Type.String()),
  conversationId: nullable(Type.String()),
  events: Type.Array(
    Type.Object({
      id: Type.String(),
      eventId: Type.String(),
      status: nullable(Type.String()),
      createdAt: Type.String({ format: 'date-time' }),
    }),
  ),
  upstream: Type.Optional(
    Type.Object({ askedAt: Type.String({ format: 'date-time' }), payments: Type.Array(Anything) }),
  ),
});

const PaymentQuery = Type.Object(
  {
    phoneNumberId: Type.Optional(Type.String({ pattern: '^[^\\u0000]{1,128}$' })),
    refresh: Type.Optional(Type.Enum(['true', 'false'])),
    paymentConfiguration: Type.Optional(Type.String({ pattern: '^[^\\u0000/]{1,256}$' })),
  },
  { additionalProperties: false },
);

/** The newest are enough for the state; each attempt of a customer has a few. */
const MAX_REPORTS = 200;

/** GET /api/external/payments/:referenceId: what became of a payment, from what the WABA was told of it. */
export function getPayment(app: ExternalApp, context: ExternalContext): void {
  const schema = {
    ...paymentDocs,
    params: Type.Object({ referenceId: Type.String() }),
    querystring: PaymentQuery,
    response: { 200: Payment },
  };
  app.get('/api/external/payments/:referenceId', { schema, config: SCOPES.read }, async (request) => {
    const { wabaId } = accountOf(request);
    const { referenceId } = request.params;
    const { phoneNumberId = null, refresh, paymentConfiguration = null } = request.query;
    const { view, order } = await findPayment(context, wabaId, referenceId, phoneNumberId);
    if (refresh !== 'true') return view;
    const configuration = paymentConfiguration ?? order?.configuration ?? null;
    if (configuration === null) {
      throw new ApiError('payment_configuration_required', { param: 'paymentConfiguration' });
    }
    const askedAt = new Date().toISOString();
    const payments = await callUpstream(context, wabaId, (client, token) =>
      client.lookUpPayment({ phoneNumberId: view.phoneNumberId, configuration, referenceId, token }),
    );
    return { ...view, upstream: { askedAt, payments: payments.filter(isMembers) } };
  });
}

const MAX_REFERENCE_CHARS = 512;

async function findPayment(
  { database }: ExternalContext,
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

function isMembers(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
