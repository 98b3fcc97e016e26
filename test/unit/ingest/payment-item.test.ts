import { describe, expect, test } from 'vitest';
import { METADATA, paymentOf, splitFixture, statusOf } from './support/upstream-body.ts';

const FULL =
  '{"id":"w","recipient_id":"91","type":"payment","status":"captured","timestamp":1790003085,"payment":{"currency":"INR",' +
  '"transaction":{"type":"razorpay","id":"order_1","status":"success","updated_timestamp":5,"x":1.0},' +
  '"amount":{"offset":100,"value":21000},"reference_id":"ord-1"}}';

describe('payments', () => {
  test('have the members of the spec in its order, with raw and transaction as upstream wrote them', () => {
    const item = paymentOf(FULL);
    expect(item.eventData).toBe(
      `{"metadata":${METADATA},"reference_id":"ord-1","status":"captured","amount":{"offset":100,"value":21000},` +
        '"currency":"INR","transaction":{"type":"razorpay","id":"order_1","status":"success","updated_timestamp":5,"x":1.0},' +
        `"recipient_id":"91","timestamp":"1790003085","raw":${FULL}}`,
    );
    expect(item).toMatchObject({
      eventId: 'payment:ord-1:order_1:captured',
      laneKey: 'ord-1',
      referenceId: 'ord-1',
      transactionId: 'order_1',
      status: 'captured',
    });
  });

  test('of the fixtures name reference, transaction and status in the eventId', () => {
    expect(splitFixture('pay_captured_upi').items[0]?.eventId).toBe(
      'payment:ord-1001:order_FIXTURE1:captured',
    );
    expect(splitFixture('pay_status_failed_defensive').items[0]?.eventId).toMatch(/:failed$/);
  });

  test.each<[string, string | undefined]>([
    ['{"value":"21000","offset":"100"}', '{"value":21000,"offset":100}'],
    [
      '{"value":"90071992547409931","offset":100,"x":1.0}',
      '{"value":90071992547409931,"offset":100,"x":1.0}',
    ],
    ['{"value":"0021","offset":1e2}', '{"value":21,"offset":1e2}'],
    ['{ "value" : 1.0 , "offset" : -0 }', '{ "value" : 1.0 , "offset" : -0 }'],
    ['{"value":"12 rupees","offset":100}', '{"offset":100}'],
    ['{"value":null,"offset":{}}', '{}'],
    ['{"value":[],"x":1,"offset":"9"}', '{"x":1,"offset":9}'],
    ['{}', '{}'],
    ['"21000"', undefined],
    ['null', undefined],
  ])('amount %s goes out as %s', (amount, expected) => {
    const item = paymentOf(`{"type":"payment","payment":{"amount":${amount},"currency":"INR"}}`);
    const pattern = /^\{"metadata":\{[^}]*\},(?:"amount":(.*?\}),)?"currency":"INR","raw"/;
    expect(item.eventData).toMatch(pattern);
    expect(pattern.exec(item.eventData)?.[1]).toBe(expected);
  });

  test('leave out what is absent or of the wrong kind, and never fail on it', () => {
    const raw =
      '{"type":"payment","status":7,"timestamp":null,"recipient_id":["x"],"payment":{"transaction":null,"currency":{}}}';
    const item = paymentOf(raw);
    expect(item.eventData).toBe(`{"metadata":${METADATA},"status":"7","raw":${raw}}`);
    expect(item.eventId).toBe('payment:::7');
    expect(item.laneKey).toBe('payment:::7');
  });

  test.each([
    '{"type":"payment"}',
    '{"status":"captured","payment":{}}',
    '{"id":"w","status":"failed","payment":{"reference_id":"r"}}',
    '{"id":"w","status":"read","payment":5}',
    '{"id":"w","status":"captured"}',
    '{"id":"w","status":"captured","payment":null}',
  ])('are recognised by their type, a payment member or a status that no message has: %s', (entry) => {
    expect(paymentOf(entry).kind).toBe('payment');
  });

  test.each(['{"id":"w","status":"failed"}', '{"id":"w","status":"read","payment":null}'])(
    'are not what has none of these: %s',
    (entry) => {
      expect(statusOf(entry).kind).toBe('status');
    },
  );

  test('have ids as strings, with every digit, in the transaction alone', () => {
    const transaction =
      '{"id":90071992547409931,"pg_transaction_id":12,"type":"upi","created_timestamp":5,' +
      '"refunds":[{"id":7,"amount":{"value":1,"offset":100}}],"method":{"type":"upi","bank_id":1.0}}';
    const entry = `{"type":"payment","status":"captured","payment":{"reference_id":"r","transaction":${transaction}}}`;
    const item = paymentOf(entry);
    expect(item.eventId).toBe('payment:r:90071992547409931:captured');
    expect(item.eventData).toContain(
      '"transaction":{"id":"90071992547409931","pg_transaction_id":"12","type":"upi","created_timestamp":5,' +
        '"refunds":[{"id":"7","amount":{"value":1,"offset":100}}],"method":{"type":"upi","bank_id":"1.0"}}',
    );
    expect(item.eventData.endsWith(`"raw":${entry}}`)).toBe(true);
  });

  test('are the same only when nothing that tells progress differs', () => {
    const keyOf = (payment: string, status = 'captured') =>
      paymentOf(`{"type":"payment","status":"${status}","payment":${payment}}`).dedupKey;
    const base = '{"reference_id":"r","transaction":{"id":"t","status":"success","updated_timestamp":1}}';
    const keys = [
      keyOf(base),
      keyOf(base, 'pending'),
      keyOf(base.replace('"r"', '"r2"')),
      keyOf(base.replace('"t"', '"t2"')),
      keyOf(base.replace('success', 'failed')),
      keyOf(base.replace(':1}', ':2}')),
      keyOf(base.replace('{"ref', '{"refunds":[{"id":"f","status":"pending"}],"ref')),
      keyOf(base.replace('{"ref', '{"refunds":[{"id":"f","status":"success"}],"ref')),
      keyOf('{"receipt":"1"}'),
      keyOf('{"receipt":"2"}'),
    ];
    expect(new Set(keys).size).toBe(keys.length);
    expect(keyOf(base.replace('{"ref', '{"receipt":"x","ref'))).toBe(keys[0]);
  });
});
