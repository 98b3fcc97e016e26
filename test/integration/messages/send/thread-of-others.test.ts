import { expect, test } from 'vitest';
import { recordFailed } from '../../../../src/features/messages/send/record-send.ts';
import { takeIn } from '../../../support/take-in.ts';
import { sendingStackOfFile, textTo } from './sending-stack.ts';

const stack = sendingStackOfFile();
const CUSTOMER = '12025550143';
const OTHERS = 'Another responder has the conversation';

/** Upstream’s copy of a message to another responder, or the same as a message to us. */
async function arrives(field: 'standby' | 'messages', id: string): Promise<void> {
  const metadata = { display_phone_number: '12025550100', phone_number_id: stack.number };
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const messages = [{ from: CUSTOMER, id, timestamp, type: 'text', text: { body: 'Hello' } }];
  const value = {
    messaging_product: 'whatsapp',
    metadata,
    ...(field === 'standby' ? { standby: { messages } } : { messages }),
  };
  const body = { entry: [{ id: stack.wabaId, changes: [{ field, value }] }] };
  await takeIn(stack.database, Buffer.from(JSON.stringify(body)));
}

const refuse = async (code: number, status = 400) =>
  await stack.addFault({ match: 'send', kind: 'status', status, code, times: 1 });

const template = {
  to: CUSTOMER,
  type: 'template',
  template: { name: 'order_ready', language: { code: 'en_US' }, components: [] },
};

test('a refused message to a conversation of another responder says what to do, beside what the code says', async () => {
  await arrives('standby', 'wamid.1');
  await refuse(999_999);
  const unknown = await stack.send(textTo(CUSTOMER));
  expect([unknown.status, unknown.body.error.advice]).toEqual([424, expect.stringMatching(`^${OTHERS}`)]);
  await refuse(131_047);
  const closed = await stack.send(textTo(CUSTOMER));
  expect(closed.body.error.advice).toMatch(new RegExp(`^More than 24 hours.*${OTHERS}`));
  const { error } = (await stack.get(closed.body.error.serviceMessageId)).body;
  expect(error.advice).toBe(closed.body.error.advice);
});

test('templates, which need no ownership, and conversations of ours get the advice of the code alone', async () => {
  await arrives('standby', 'wamid.1');
  await refuse(132_001);
  expect((await stack.send(template)).body.error.advice).not.toContain(OTHERS);
  await arrives('messages', 'wamid.2');
  await refuse(131_047);
  expect((await stack.send(textTo(CUSTOMER))).body.error.advice).not.toContain(OTHERS);
});

test('one that upstream refuses later, by a status, is explained where it is shown', async () => {
  await arrives('standby', 'wamid.1');
  const { body } = await stack.send(textTo(CUSTOMER));
  const metadata = { display_phone_number: '12025550100', phone_number_id: stack.number };
  const status = {
    id: body.metaMessageId,
    status: 'failed',
    timestamp: '1790000000',
    recipient_id: CUSTOMER,
  };
  const statuses = [{ ...status, errors: [{ code: 999_999, title: 'No' }] }];
  const value = { messaging_product: 'whatsapp', metadata, statuses };
  const change = { entry: [{ id: stack.wabaId, changes: [{ field: 'messages', value }] }] };
  await takeIn(stack.database, Buffer.from(JSON.stringify(change)));
  const shown = (await stack.get(body.serviceMessageId)).body.statuses;
  expect(shown[0].errors[0].advice).toContain(OTHERS);
});

test.each([138_038, 2_494_191])(
  'code %i is never tried again, whatever status it comes with',
  async (code) => {
    for (const status of [400, 429, 500]) {
      await stack.clearUpstream();
      await refuse(code, status);
      const { status: answered, body } = await stack.send(textTo(CUSTOMER));
      expect([answered, body.error.upstream.code]).toEqual([424, code]);
      expect(body.error.advice).toContain('Meta Business Suite');
      expect(await stack.sendRequests()).toHaveLength(1);
    }
  },
);

test('a refusal of a message that was erased meanwhile is over', async () => {
  const gone = { wabaId: stack.wabaId, messageId: '999999999' };
  const error = { code: 'upstream_refused', message: 'Refused.', upstream: { code: 131_047 } } as const;
  expect(await recordFailed(stack.database, gone, error)).toBe(false);
});
