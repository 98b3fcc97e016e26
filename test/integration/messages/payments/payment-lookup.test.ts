import { describe, expect, test } from 'vitest';
import { listPaymentReports } from '../../../../src/features/messages/payments.ts';
import { dropDay } from '../../../../src/ops/erasures/retention/expired-days.ts';
import { ensurePartitions } from '../../../../src/platform/postgres/partitions.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { takeIn } from '../../../support/take-in.ts';
import { askApi } from '../send/ask-api.ts';
import { type SendingStack, sendingStackOfFile } from '../send/sending-stack.ts';

const stack = sendingStackOfFile();

const ask = (url: string, options: Parameters<typeof askApi>[2] = {}) => askApi(stack, url, options);

describe('a payment', () => {
  const show = (reference: string, search = '', authorization = '') =>
    ask(`/api/external/payments/${encodeURIComponent(reference)}${search}`, { authorization });

  type Report = {
    reference: string;
    status: string;
    seconds: number;
    transaction?: unknown;
    refunds?: unknown;
  };

  /** What upstream would send, by intake. */
  async function report(
    { reference, status, seconds, transaction, refunds }: Report,
    { wabaId, number }: Pick<SendingStack, 'wabaId' | 'number'> = stack,
  ) {
    const payment = {
      reference_id: reference,
      amount: { value: 21_000, offset: 100 },
      currency: 'INR',
      ...(transaction !== undefined && { transaction }),
      ...(refunds !== undefined && { refunds }),
    };
    const entry = {
      id: 'gBGG',
      recipient_id: '910000000143',
      type: 'payment',
      status,
      payment,
      timestamp: `${seconds}`,
    };
    const value = {
      messaging_product: 'whatsapp',
      metadata: { display_phone_number: '12025550100', phone_number_id: number },
      statuses: [entry],
    };
    const changes = [{ field: 'messages', value }];
    const body = { object: 'whatsapp_business_account', entry: [{ id: wabaId, changes }] };
    await takeIn(stack.database, Buffer.from(JSON.stringify(body)));
  }

  const transaction = (id: string, status: string, updated: number) => ({
    id,
    type: 'razorpay',
    status,
    updated_timestamp: updated,
  });

  test('shows the latest state, each transaction and each refund, from the events of the WABA', async () => {
    const reference = 'order-7.a_b';
    const failed = transaction('order_1', 'failed', 100);
    await report({
      reference,
      status: 'pending',
      seconds: 1_790_000_000,
      transaction: transaction('order_1', 'pending', 90),
    });
    await report({ reference, status: 'pending', seconds: 1_790_000_010, transaction: failed });
    const paid = transaction('order_2', 'success', 120);
    await report({ reference, status: 'captured', seconds: 1_790_000_020, transaction: paid });
    const refunds = [{ id: 'rfnd_1', status: 'pending' }];
    await report({ reference, status: 'captured', seconds: 1_790_000_030, transaction: paid, refunds });
    // Late: it must not take the payment back.
    await report({
      reference,
      status: 'pending',
      seconds: 1_790_000_005,
      transaction: transaction('order_2', 'pending', 95),
    });
    const { status, body } = await show(reference);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      referenceId: reference,
      phoneNumberId: stack.number,
      status: 'captured',
      amount: { value: 21_000, offset: 100 },
      currency: 'INR',
      updatedAt: new Date(1_790_000_030_000).toISOString(),
      transactions: [paid, failed],
      refunds,
      serviceMessageId: null,
      conversationId: null,
    });
    expect(body.events).toHaveLength(5);
    expect(body.events[0]).toEqual({
      id: expect.stringMatching(/^evt_/),
      eventId: `payment:${reference}:order_1:pending`,
      status: 'pending',
      createdAt: expect.any(String),
    });
    const event = await ask(`/api/external/events/${body.events[0].id}`);
    expect(event.body.eventType).toBe('payment');
  });

  test('is found whatever its reference id looks like, and only by its own', async () => {
    const odd = ['pay/1 ü', 'x'.repeat(300), 'sha256:1', 'replay/1'];
    for (const reference of odd) await report({ reference, status: 'captured', seconds: 1_790_000_000 });
    for (const reference of odd) {
      const { status, body } = await show(reference);
      expect([reference, status, body.status]).toEqual([reference, 200, 'captured']);
    }
    for (const unknown of ['nothing', 'payment:pay::captured', '\0', 'x'.repeat(2_000), '%']) {
      expect([unknown, (await show(unknown)).status]).toEqual([unknown, 404]);
    }
    const other = await stack.newTenant();
    expect((await show('sha256:1', '', other.authorization)).status).toBe(404);
    await report({ reference: 'sha256:1', status: 'pending', seconds: 1 }, other);
    expect((await show('sha256:1', '', other.authorization)).body.status).toBe('pending');
    expect((await show('sha256:1')).body.status).toBe('captured');
  });

  test('of two numbers is told apart by phoneNumberId', async () => {
    const { wabaId, number, secondNumber } = stack;
    await report({ reference: 'twice', status: 'captured', seconds: 1_790_000_000 });
    await report(
      { reference: 'twice', status: 'pending', seconds: 1_790_000_000 },
      { wabaId, number: secondNumber },
    );
    expect((await show('twice')).body).toMatchObject({ phoneNumberId: secondNumber, status: 'pending' });
    expect((await show('twice', `?phoneNumberId=${number}`)).body.status).toBe('captured');
    expect((await show('twice', '?phoneNumberId=1')).status).toBe(404);
  });

  const amount = (value: number) => ({ value, offset: 100 });
  const orderDetails = (reference: string, phoneNumberId = stack.number) => ({
    phoneNumberId,
    to: '+910000000143',
    type: 'interactive',
    interactive: {
      type: 'order_details',
      body: { text: 'Your order' },
      action: {
        name: 'review_and_pay',
        parameters: {
          reference_id: reference,
          type: 'digital-goods',
          currency: 'INR',
          total_amount: amount(100),
          payment_settings: [
            { type: 'payment_gateway', payment_gateway: { type: 'razorpay', configuration_name: 'main' } },
          ],
          order: { status: 'pending', subtotal: amount(100), tax: amount(0) },
        },
      },
    },
  });

  test('that was asked for and not reported yet is known, and upstream says how it stands', async () => {
    const sent = await stack.send(orderDetails('fresh-1'));
    const { status, body } = await show('fresh-1');
    expect([status, body]).toEqual([
      200,
      {
        referenceId: 'fresh-1',
        phoneNumberId: stack.number,
        status: null,
        updatedAt: null,
        transactions: [],
        refunds: [],
        serviceMessageId: sent.body.serviceMessageId,
        conversationId: sent.body.conversationId,
        events: [],
      },
    ]);
    const fresh = await show('fresh-1', '?refresh=true');
    expect(fresh.body.upstream).toMatchObject({
      askedAt: expect.any(String),
      payments: [{ reference_id: 'fresh-1', status: 'captured', transactions: [{ id: 'order_fresh-1' }] }],
    });
    expect(fresh.body.status).toBeNull();
    expect((await show('fresh-1')).body).toEqual(body);
  });

  test('that was asked for by two numbers is the later one’s', async () => {
    await stack.send(orderDetails('both', stack.secondNumber));
    expect((await show('both')).body.phoneNumberId).toBe(stack.secondNumber);
    const later = await stack.send(orderDetails('both'));
    const { body } = await show('both');
    expect([body.phoneNumberId, body.serviceMessageId]).toEqual([stack.number, later.body.serviceMessageId]);
  });

  test('is looked up under the configuration that is named, when no message of ours names one', async () => {
    await report({ reference: 'outside', status: 'pending', seconds: 1_790_000_000 });
    const without = await show('outside', '?refresh=true');
    expect([without.status, without.body.error.code, without.body.error.param]).toEqual([
      422,
      'payment_configuration_required',
      'paymentConfiguration',
    ]);
    const named = await show('outside', '?refresh=true&paymentConfiguration=main');
    expect(named.body.upstream.payments[0].status).toBe('captured');
    const refused = await show('outside', '?refresh=true&paymentConfiguration=unknown');
    expect([refused.status, refused.body.error.code]).toEqual([424, 'upstream_refused']);
    await stack.addFault({ match: 'payments', kind: 'status', status: 500, times: 1 });
    expect((await show('outside', '?refresh=true&paymentConfiguration=main')).status).toBe(503);
    expect((await show('outside', '?refresh=yes')).status).toBe(400);
  });

  test('is known for longer than its events are kept', async () => {
    const { database } = stack;
    await report({ reference: 'kept', status: 'captured', seconds: 1_790_000_000 });
    const before = await show('kept');
    expect(before.body).toMatchObject({ status: 'captured', amount: { value: 21_000, offset: 100 } });
    const [row] = await query<{ day: string }>(database, `select (now() at time zone 'utc')::date as day`);
    expect(await dropDay(database, 'events', row?.day ?? '')).toBe('dropped');
    expect(await ensurePartitions(database)).toEqual([]);
    expect((await show('kept')).body).toEqual(before.body);
  });

  test('is found by an index, however many events there are', async () => {
    let plan = '';
    await stack.database.transaction(async (trx) => {
      // The table of the test is small.
      await trx.raw('set local enable_seqscan = off');
      const raw = async (text: string, bindings: never) => {
        const { rows } = await trx.raw(`explain (format json) ${text}`, bindings);
        plan = JSON.stringify(rows);
        return { rows: [] } as never;
      };
      await listPaymentReports({ ...trx, raw }, stack.wabaId, 'order-7', 10);
    });
    expect(plan).toMatch(/payment_reports_payment/);
    expect(plan).not.toContain('Seq Scan');
  });
});
