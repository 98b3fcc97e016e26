import type { PhoneNumber } from '../demo-accounts.ts';
import { contactOf, userIdOf } from './customer-identity.ts';
import type { BuiltBody } from './inbound-message.ts';
import { createRandomSource, outboundWamid, type RandomSource, timestampSeconds } from './sources.ts';
import { type JsonObject, webhookBody } from './webhook-body.ts';

/** What a caller may say about a payment update. */
export type PaymentRequest = {
  /** pending, captured or refund; anything else is sent as the platform's status of that name. */
  status: string;
  seed?: string;
  phoneNumberId?: string;
  timestampSeconds?: number;
  from?: string;
  name?: string;
  referenceId?: string;
  /** Minor units: 21000 with offset 100 is 210.00. */
  amountValue?: number;
  currency?: string;
  /** Minor units of a refund. */
  refundValue?: number;
  refundStatus?: string;
};

/** The JSON schema of PaymentRequest. */
export const paymentRequestProperties = {
  type: { const: 'payment' },
  status: { type: 'string', minLength: 1, maxLength: 100 },
  seed: { type: 'string' },
  phoneNumberId: { type: 'string' },
  timestampSeconds: { type: 'integer', minimum: 0 },
  from: { type: 'string' },
  name: { type: 'string' },
  referenceId: { type: 'string', minLength: 1, maxLength: 35 },
  amountValue: { type: 'integer', minimum: 0 },
  currency: { type: 'string', minLength: 3, maxLength: 3 },
  refundValue: { type: 'integer', minimum: 0 },
  refundStatus: { type: 'string' },
} as const;

const OFFSET = 100;
const DEFAULT_AMOUNT_VALUE = 21_000;
const DEFAULT_REFUND_VALUE = 5_000;

function refundsOf(request: PaymentRequest, seconds: number, random: RandomSource): JsonObject {
  if (request.status !== 'refund') {
    return {};
  }
  const refund = {
    id: `rfnd_${random.hex(14)}`,
    amount: { value: request.refundValue ?? DEFAULT_REFUND_VALUE, offset: OFFSET },
    speed_processed: 'normal',
    status: request.refundStatus ?? 'success',
    created_timestamp: seconds,
    updated_timestamp: seconds,
  };
  return { refunds: [refund] };
}

function transactionOf(request: PaymentRequest, referenceId: string, seconds: number): JsonObject {
  // The gateway's ids stay the same over the life of one reference, so pending and captured match.
  const key = createRandomSource(`payment:${referenceId}`).hex(14);
  const isPaid = request.status === 'captured' || request.status === 'refund';
  const paid = { pg_transaction_id: `pay_${key}`, method: { type: 'upi' } };
  const pending = request.status === 'pending' ? 'pending' : 'failed';
  return {
    id: `order_${key}`,
    type: 'razorpay',
    status: isPaid ? 'success' : pending,
    created_timestamp: seconds,
    updated_timestamp: seconds,
    ...(isPaid ? paid : {}),
  };
}

/** Builds the webhook body of one payment update (India, payment gateway mode). */
export function buildPaymentStatus(request: PaymentRequest, phone: PhoneNumber): BuiltBody {
  const random = createRandomSource(request.seed);
  const customer = request.from ?? '910000000143';
  const seconds = Number(timestampSeconds(request));
  const referenceId = request.referenceId ?? `ord-${random.hex(8).toLowerCase()}`;
  const id = outboundWamid(customer, random);
  const status = {
    id,
    recipient_id: customer,
    type: 'payment',
    // A refund is reported on the captured payment.
    status: request.status === 'refund' ? 'captured' : request.status,
    payment: {
      reference_id: referenceId,
      amount: { value: request.amountValue ?? DEFAULT_AMOUNT_VALUE, offset: OFFSET },
      currency: request.currency ?? 'INR',
      transaction: transactionOf(request, referenceId, seconds),
      ...refundsOf(request, seconds, random),
    },
    timestamp: String(seconds),
  };
  const identity = { waId: customer, userId: userIdOf(customer, phone) };
  const contacts = [contactOf(identity, { name: request.name ?? 'Dev Placeholder' })];
  return { id: referenceId, body: webhookBody(phone, { contacts, statuses: [status] }) };
}
