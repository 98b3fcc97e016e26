import { describe, expect, test } from 'vitest';
import { sendingStackOfFile } from './sending-stack.ts';

const TO = '+1 (202) 555-0143';

const stack = sendingStackOfFile();

const sentBody = async () => (await stack.sent())[0]?.body;

describe('a body that upstream takes', () => {
  test('is a text when it has no type', async () => {
    const { status, body } = await stack.send({ to: TO, text: { body: 'Hello' } });
    expect([status, body.state]).toEqual([200, 'accepted']);
    expect(await sentBody()).toMatchObject({ to: TO, text: { body: 'Hello' } });
    expect((await stack.get(body.serviceMessageId)).body).toMatchObject({ type: 'text', to: TO });
  });

  test('may name the recipient by phone number and user id, and goes to the phone number', async () => {
    const recipient = 'US.13491208655302741918';
    const { status, body } = await stack.send({ to: TO, recipient, text: { body: 'Hello' } });
    expect([status, body.waId]).toEqual([200, '12025550143']);
    expect(await sentBody()).toMatchObject({ to: TO, recipient });
    const toPhone = await stack.send({ to: TO, text: { body: 'Hello' } });
    expect(toPhone.body.conversationId).toBe(body.conversationId);
    expect((await stack.get(body.serviceMessageId)).body).toMatchObject({ to: TO, recipient });
  });

  test('is answered with the WhatsApp id that upstream knows the phone number by, and a user id has none', async () => {
    const { body } = await stack.send({ to: TO, text: { body: 'Hello' } });
    expect(body.waId).toBe('12025550143');
    expect((await stack.get(body.serviceMessageId)).body.waId).toBe('12025550143');
    const byUserId = await stack.send({ recipient: 'US.1349', text: { body: 'Hello' } });
    expect(byUserId.status).toBe(200);
    expect(byUserId.body).not.toHaveProperty('waId');
  });
});

describe('what the service does not know yet', () => {
  test.each([
    ['a type', { type: 'poll', poll: { question: 'Tea?', options: [{ id: 1 }] } }, ['type']],
    [
      'a type of interactive message',
      { type: 'interactive', interactive: { type: 'quiz', action: { rounds: [{ a: 1 }] } } },
      ['interactive/type'],
    ],
    [
      'members in lists and objects',
      {
        type: 'interactive',
        interactive: {
          type: 'list',
          body: { text: 'Tea', style: 'bold' },
          action: {
            button: 'Open',
            sections: [{ rows: [{ id: 'g', title: 'Green', badge: { text: 'New' } }] }],
          },
        },
      },
      ['interactive/body/style', 'interactive/action/sections/0/rows/0/badge'],
    ],
  ])('%s is passed on as it is, with a warning, and upstream decides', async (_what, message, params) => {
    const { status, body } = await stack.send({ to: TO, ...message });
    // The sandbox knows no more than the service: it refuses as upstream refuses what it does not know.
    expect(status).toBe(424);
    expect(body.error.code).toBe('upstream_refused');
    expect(body.error.upstream.code).toEqual(expect.any(Number));
    expect(body.error.warnings.map(({ param }: { param: string }) => param)).toEqual(params);
    const { body: shown } = await stack.get(body.error.serviceMessageId);
    expect(shown.message).toMatchObject(message);
    expect(await stack.sendRequests()).toHaveLength(1);
  });

  test('a repeated request gets the warnings again, and a known message has none', async () => {
    await stack.addFault({ match: 'send', kind: 'status', status: 400, code: 131009, times: 1 });
    const message = { to: TO, text: { body: 'Hello', tone: 'glad' } };
    const first = await stack.send(message, { 'idempotency-key': 'warned' });
    const again = await stack.send(message, { 'idempotency-key': 'warned' });
    expect(first.body.error.warnings).toEqual([
      { param: 'text/tone', message: expect.stringMatching(/passed on/) },
    ]);
    expect(again.text).toBe(first.text);
    const known = await stack.send({ to: TO, text: { body: 'Hello' } });
    expect(known.body).not.toHaveProperty('warnings');
  });
});

describe('upstream’s limits', () => {
  test.each([
    ['a text that is too long', { text: { body: 'x'.repeat(4_097) } }],
    ['no text at all', { text: { body: '' } }],
    [
      'a title that is too long',
      {
        type: 'interactive',
        interactive: {
          type: 'button',
          body: { text: 'Tea?' },
          action: { buttons: [{ type: 'reply', reply: { id: 'y', title: 'x'.repeat(21) } }] },
        },
      },
    ],
    ['a file and a link at once', { type: 'image', image: { id: '1', link: 'https://shop.example/a.jpg' } }],
  ])('%s: upstream refuses it, and its error is the answer', async (_what, message) => {
    const { status, body } = await stack.send({ to: TO, ...message });
    expect([status, body.error.code]).toEqual([424, 'upstream_refused']);
    expect(body.error.upstream).toMatchObject({ type: 'OAuthException', code: expect.any(Number) });
    expect(await stack.sendRequests()).toHaveLength(1);
  });
});
