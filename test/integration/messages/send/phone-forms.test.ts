import { expect, test } from 'vitest';
import { execute } from '../../../../src/platform/postgres/sql.ts';
import { takeIn } from '../../../support/take-in.ts';
import { addFacadeKey } from '../../api/graph/facade-key.ts';
import { bodyOf, eraseAll, messageOf, person, toolsFor } from '../../erasures/erasure-world.ts';
import { sendingStackOfFile } from './sending-stack.ts';

const stack = sendingStackOfFile();

const EXTERNAL = '/api/external';

async function ask(method: 'GET' | 'POST', path: string, payload?: object) {
  const { authorization } = stack;
  await execute(
    stack.database,
    `update api_keys set scopes = '{send,read,export,erase}' where waba_id = :wabaId`,
    { wabaId: stack.wabaId },
  );
  const url = `${EXTERNAL}${path}`;
  const answer = await stack.app.inject({
    method,
    url,
    headers: { authorization },
    ...(payload && { payload }),
  });
  return { status: answer.statusCode, answer };
}

async function found(customer: string): Promise<string[]> {
  const { answer } = await ask('POST', '/conversations/search', { customer });
  const inAddress = await ask('GET', `/conversations?customer=${encodeURIComponent(customer)}`);
  expect(inAddress.answer.json().data).toEqual(answer.json().data);
  return answer.json().data.map(({ id }: { id: string }) => id);
}

const sendTo = async (to: string) => {
  const { status, body } = await stack.send({ to, type: 'text', text: { body: 'x' } });
  expect([to, status]).toEqual([to, 200]);
  return body;
};

let numbers = 0;
const newNumber = () => `3361234${String(1_000 + numbers++)}`;

/** As people and programs write the number of these digits. */
const formsOf = (digits: string) => [
  `00${digits}`,
  `+00${digits}`,
  `00 ${digits.slice(0, 2)} ${digits.slice(2)}`,
  `+${digits.slice(0, 2)}/${digits.slice(2)}`,
  `tel:+${digits}`,
  `\u202a+${digits}\u202c`,
  `${digits.slice(0, 4)}\u2011${digits.slice(4)}`,
  `${digits}\u200b`,
  `\uff0b${digits}`,
  [...digits].map((digit) => String.fromCharCode(0xff10 + Number(digit))).join(''),
  [...digits].map((digit) => String.fromCharCode(0x0660 + Number(digit))).join(''),
];

const NONE = ['3.3612345678e10', '33612345678.0', 'Asha', '33612345678@c.us', '+44 (0)20 7946 0018', "'--"];

test('a message to a number in any form is in the one conversation, and found by any form', async () => {
  const digits = newNumber();
  await sendTo(digits);
  const [conversation] = await found(digits);
  for (const form of formsOf(digits)) {
    await sendTo(form);
    expect([form, await found(form)]).toEqual([form, [conversation]]);
  }
  const sent = await stack.sent();
  expect(new Set(sent.map(({ body }) => (body as { to: string }).to))).toEqual(
    new Set([digits, `+${digits}`]),
  );
});

test('the facade reads the same numbers, and a number that is written as one', async () => {
  const digits = newNumber();
  const key = await addFacadeKey(stack.database, stack.wabaId);
  for (const to of [...formsOf(digits), Number(digits)]) {
    const answer = await stack.app.inject({
      method: 'POST',
      url: `/graph/v26.0/${stack.number}/messages`,
      headers: { authorization: `Bearer ${key}` },
      payload: { messaging_product: 'whatsapp', to, type: 'text', text: { body: 'x' } },
    });
    expect([to, answer.statusCode, answer.json().contacts]).toEqual([
      to,
      200,
      [{ input: String(to), wa_id: digits }],
    ]);
  }
  expect(await found(digits)).toHaveLength(1);
});

test('the facade takes a number with an exponent, which is the same number', async () => {
  const key = await addFacadeKey(stack.database, stack.wabaId);
  const send = async (to: string) =>
    await stack.app.inject({
      method: 'POST',
      url: `/graph/v26.0/${stack.number}/messages`,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      payload: `{"messaging_product":"whatsapp","to":${to},"type":"text","text":{"body":"x"}}`,
    });
  expect((await send('1.2025550143e10')).json().contacts).toEqual([
    { input: '12025550143', wa_id: '12025550143' },
  ]);
  for (const wrong of ['12025550143.5', '-12025550143', '1e30', 'true', '{}', '[12025550143]'])
    expect([wrong, (await send(wrong)).statusCode]).toEqual([wrong, 400]);
});

test('an erasure takes the customer whom the number names, and no other', async () => {
  const [digits, other] = [newNumber(), newNumber()];
  const { serviceMessageId } = await sendTo(`00${digits}`);
  await sendTo(other);
  const named = person('Zero', digits);
  const body = { contacts: [], messages: [messageOf(named, 1)] };
  await takeIn(stack.database, bodyOf([body], stack.wabaId, stack.number));
  expect(await found(`00${digits}`)).toHaveLength(1);
  expect((await ask('POST', '/exports', { customer: `00${digits}` })).status).toBe(200);
  const asked = await ask('POST', '/erasures', { customer: `0 0${digits}` });
  expect(asked.status).toBe(202);
  await eraseAll(toolsFor(stack.database, stack.config), asked.answer.json().id);
  expect((await ask('GET', `/messages/${serviceMessageId}`)).status).toBe(404);
  expect(await found(digits)).toEqual([]);
  expect(await found(other)).toHaveLength(1);
});

test('what is neither a phone number nor a user id is refused, as no answer would say that there is nobody', async () => {
  for (const customer of NONE) {
    const doors = [
      await ask('POST', '/conversations/search', { customer }),
      await ask('GET', `/conversations?customer=${encodeURIComponent(customer)}`),
      await ask('POST', '/exports', { customer }),
      await ask('POST', '/erasures', { customer }),
    ];
    expect(doors.map(({ status, answer }) => [customer, status, answer.json().error.param])).toEqual(
      doors.map(() => [customer, 400, 'customer']),
    );
    const { status, body } = await stack.send({ to: customer, type: 'text', text: { body: 'x' } });
    expect([customer, status, body.error?.param]).toEqual([customer, 400, 'to']);
  }
  for (const customer of [33612345678, null, ['33612345678']])
    expect((await ask('POST', '/erasures', { customer } as object)).status).toBe(400);
});

test('of two numbers in one object the last one counts, here and for upstream', async () => {
  const [first, last] = [newNumber(), newNumber()];
  const answer = await stack.app.inject({
    method: 'POST',
    url: `${EXTERNAL}/messages`,
    headers: { authorization: stack.authorization, 'content-type': 'application/json' },
    payload: `{"phoneNumberId":"${stack.number}","to":"${first}","type":"text","to":"${last}","text":{"body":"x"}}`,
  });
  expect(answer.statusCode).toBe(200);
  expect([await found(first), (await found(last)).length]).toEqual([[], 1]);
  expect((await stack.sent()).map(({ body }) => (body as { to: string }).to)).toEqual([last]);
});

test('a number is not the id of a group', async () => {
  const group = { recipient_type: 'group', type: 'text', text: { body: 'x' } };
  for (const to of ['0033612345678', '+33612345678', '33.612.345.678'])
    expect([to, (await stack.send({ ...group, to })).status]).toEqual([to, 400]);
});
