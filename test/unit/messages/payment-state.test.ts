import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { paymentState } from '../../../src/features/messages/payments.ts';
import { orderPaymentOf } from '../../../src/features/messages/send/message-content.ts';

const report = (status: string, timestamp: unknown, more: Record<string, unknown> = {}) => ({
  status,
  timestamp,
  ...more,
});
const stateOf = (...reports: Record<string, unknown>[]) =>
  paymentState(reports.map((data, position) => ({ data, position })));

describe('the state of a payment', () => {
  test('is what upstream dated last, in whatever order it came', () => {
    const reports = [report('pending', '10'), report('pending', '20'), report('captured', '30')];
    fc.assert(
      fc.property(fc.shuffledSubarray(reports, { minLength: 3 }), (arrived) => {
        expect(stateOf(...arrived).status).toBe('captured');
      }),
    );
  });

  test('of one second is the final one, and of two alike the one that came last', () => {
    expect(stateOf(report('captured', '10'), report('pending', '10')).status).toBe('captured');
    expect(
      stateOf(report('pending', '10', { amount: 1 }), report('pending', '10', { amount: 2 })).amount,
    ).toBe(2);
  });

  test('counts times in milliseconds and in seconds alike', () => {
    const state = stateOf(report('captured', '1790000060'), report('pending', '1790000000000'));
    expect(state).toMatchObject({ status: 'captured', updatedAt: new Date(1_790_000_060_000) });
    const inMs = stateOf(report('pending', '1790000000'), report('captured', '1790000060500'));
    expect(inMs.updatedAt).toEqual(new Date(1_790_000_060_500));
    expect(stateOf(report('pending', '1790000060900'), report('captured', '1790000060')).status).toBe(
      'captured',
    );
    expect(stateOf(report('pending', 'soon')).updatedAt).toBeNull();
  });

  test('survives reports without a time, without a transaction and of odd types', () => {
    expect(stateOf()).toEqual({
      status: null,
      amount: undefined,
      currency: undefined,
      updatedAt: null,
      transactions: [],
      refunds: [],
    });
    expect(stateOf({ status: 7, timestamp: {}, transaction: 'x', raw: null }).status).toBeNull();
    expect(stateOf(report('pending', null), report('captured', 'soon')).status).toBe('captured');
  });

  test('holds the latest report of each transaction and refund, wherever upstream nests refunds', () => {
    const old = { id: 'a', status: 'failed', refunds: [{ id: 'r1', status: 'pending' }] };
    const last = { id: 'b', status: 'success' };
    const raw = { payment: { refunds: [{ id: 'r1', status: 'success' }, { id: 'r2' }] } };
    const { transactions, refunds } = stateOf(
      report('pending', '10', { transaction: old }),
      report('captured', '20', { transaction: last, raw }),
    );
    expect(transactions).toEqual([last, old]);
    expect(refunds).toEqual([{ id: 'r1', status: 'success' }, { id: 'r2' }]);
  });
});

describe('the payment of a message', () => {
  const parameters = {
    reference_id: 'order-7',
    payment_settings: [
      { type: 'upi_intent_link', upi_intent_link: { link: 'upi://x' } },
      { type: 'payment_gateway', payment_gateway: { type: 'razorpay', configuration_name: 'main' } },
    ],
  };

  test('is read from order_details, interactive or template, and from nothing else', () => {
    const expected = { referenceId: 'order-7', configuration: 'main' };
    const interactive = { type: 'order_details', action: { name: 'review_and_pay', parameters } };
    expect(orderPaymentOf({ type: 'interactive', interactive })).toEqual(expected);
    const action = { type: 'action', action: { order_details: parameters } };
    const template = {
      name: 'pay',
      components: [{ type: 'body' }, { type: 'button', parameters: [action] }],
    };
    expect(orderPaymentOf({ type: 'template', template })).toEqual(expected);
    const status = { type: 'order_status', action: { parameters } };
    for (const other of [
      null,
      [],
      { type: 'text' },
      { interactive: status },
      { template: { components: 1 } },
    ]) {
      expect(orderPaymentOf(other)).toBeNull();
    }
  });

  test('may be looked up by the name of its configuration only, old form or new', () => {
    const of = (more: object) =>
      orderPaymentOf({
        interactive: { type: 'order_details', action: { parameters: { reference_id: 'x', ...more } } },
      });
    expect(of({ payment_configuration: 'old' })).toEqual({ referenceId: 'x', configuration: 'old' });
    expect(of({ payment_settings: 'x' })).toEqual({ referenceId: 'x', configuration: null });
    expect(of({ reference_id: 7 })).toBeNull();
  });
});
