import { documented } from '../../openapi/documented.ts';

const TRANSACTION = {
  id: 'order_Mx1',
  pg_transaction_id: 'pay_Mx2',
  type: 'razorpay',
  status: 'success',
  created_timestamp: 1790000000,
  updated_timestamp: 1790000060,
};

/** What the document says about payments. */
export const paymentDocs = documented({
  operationId: 'getPayment',
  summary: 'What became of a payment',
  description:
    'The state of the payment that an `order_details` message asked for, from the `payment` events of the WABA: what ' +
    'upstream dated last counts. `transactions` and `refunds` hold the latest report of each, the newest first, as ' +
    'upstream wrote them. Without a report `status` is null. Webhooks alone are no proof of a payment: with ' +
    '`refresh=true` upstream is asked, and `upstream.payments` holds what it says; the events stay as they are.',
  tag: 'Payments',
  errors: [
    'payment_configuration_required',
    'upstream_refused',
    'access_token_missing',
    'upstream_unavailable',
  ],
  parameters: {
    referenceId: { description: '`reference_id` of the order message.', example: 'order-7' },
    phoneNumberId: {
      description:
        'Which number’s payment, where several used the reference id. Left out: the last heard of.',
      example: '800000000000221',
    },
    refresh: { description: '`true` asks upstream as well.', example: 'true' },
    paymentConfiguration: {
      description: 'The configuration to look under. Left out: the one that the order message names.',
      example: 'razorpay-main',
    },
  },
  answers: {
    200: {
      description: 'The payment.',
      example: {
        referenceId: 'order-7',
        phoneNumberId: '800000000000221',
        status: 'captured',
        amount: { value: 21000, offset: 100 },
        currency: 'INR',
        updatedAt: '2026-09-21T14:14:20.000Z',
        transactions: [TRANSACTION],
        refunds: [],
        serviceMessageId: '4711',
        conversationId: '42',
        events: [
          {
            id: 'evt_019aa3f2c0de7abc8def0123456789ab',
            eventId: 'payment:order-7:order_Mx1:captured',
            status: 'captured',
            createdAt: '2026-09-21T14:14:21.120Z',
          },
        ],
      },
    },
  },
});
