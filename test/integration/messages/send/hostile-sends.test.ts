import fc from 'fast-check';
import { expect, test } from 'vitest';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { HOSTILE_JSON, membersOf, withMember } from '../../../support/hostile-messages.ts';
import { SEND_EXAMPLES, type SendExample } from '../../../support/send-examples.ts';
import { sendingStackOfFile } from './sending-stack.ts';

const stack = sendingStackOfFile();

/** Each send has a recipient of its own, so that no pace holds it up. */
let recipients = 0;
const nextRecipient = () => `+1202${5_550_000 + recipients++}`;

/** Sends the text of a request through the route. */
async function sendText(payload: string) {
  const headers = { authorization: stack.authorization, 'content-type': 'application/json' };
  const url = '/api/external/messages';
  const response = await stack.app.inject({ method: 'POST', url, headers, payload });
  return { status: response.statusCode, sizeBytes: response.rawPayload.length, body: response.json() };
}

const countMessages = async () =>
  (await query(stack.database, 'select 1 from messages where waba_id = :wabaId', { wabaId: stack.wabaId }))
    .length;

/** What has to hold for the response to any request, whatever it holds. */
async function checkSend(payload: string, type: string, before: number): Promise<void> {
  const { status, sizeBytes, body } = await sendText(payload);
  expect([200, 400, 422, 424], payload).toContain(status);
  expect(sizeBytes).toBeLessThan(32_768);
  if (status === 400 || status === 422) {
    expect(body.error.code, payload).toMatch(/^(invalid_parameter|invalid_body|invalid_json|unknown_media)$/);
    expect(await countMessages(), payload).toBe(before);
    return;
  }
  expect(await countMessages(), payload).toBe(before + 1);
  // An unknown outcome would mean that the sandbox platform failed at the message.
  if (status === 200) expect(body.state, payload).toBe('accepted');
  else expect(body.error.upstream, payload).toMatchObject({ code: expect.any(Number) });
  const { body: shown } = await stack.get(body.serviceMessageId ?? body.error.serviceMessageId);
  expect(shown.message[type], payload).toEqual(JSON.parse(payload)[type]);
}

const KINDS = Object.keys(SEND_EXAMPLES);

test('a message of any type with a hostile value at any place is sent exactly as it is, or refused with a reason', async () => {
  const anyCase = fc.record({
    kind: fc.constantFrom(...KINDS),
    place: fc.nat(),
    hostile: fc.constantFrom(...HOSTILE_JSON),
  });
  await fc.assert(
    fc.asyncProperty(anyCase, async ({ kind, place, hostile }) => {
      const example: SendExample = SEND_EXAMPLES[kind] ?? { type: 'text' };
      const paths = membersOf(example[example.type], [example.type]);
      const message = withMember(example, paths[place % paths.length] ?? [], hostile);
      const request = { phoneNumberId: stack.number, to: nextRecipient(), message: 0 };
      const payload = JSON.stringify(request).replace('"message":0', message.slice(1, -1));
      await checkSend(payload, example.type, await countMessages());
    }),
    { numRuns: 120 },
  );
});

test('a hostile value in a member of the service itself is refused, or changes no other member', async () => {
  const names = [
    'to',
    'recipient',
    'context',
    'biz_opaque_callback_data',
    'messaging_product',
    'extra',
    'type',
  ];
  for (const [index, hostile] of HOSTILE_JSON.entries()) {
    const name = names[index % names.length] ?? 'to';
    const request = {
      phoneNumberId: stack.number,
      to: nextRecipient(),
      type: 'text',
      text: { body: 'Hello' },
    };
    await checkSend(withMember(request, [name], hostile), 'text', await countMessages());
  }
});
