import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { eraseCustomer } from '../../../../src/ops/erasures/erasures.ts';
import { parseEncryptionKeys } from '../../../../src/platform/crypto/secret-box.ts';
import { openObjectStore } from '../../../../src/platform/object-store/object-store.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { orders } from '../../../support/orders.ts';
import { storedEvents, takeIn } from '../../../support/take-in.ts';
import { addEndpoint, testSecretBox } from '../../../support/test-accounts.ts';
import { eraseAll } from '../../erasures/erasure-world.ts';
import { sendingStackOfFile } from './sending-stack.ts';

const stack = sendingStackOfFile();

const START = 1_790_000_000;
const STOP = { type: 'text', text: { body: ' stop ' } };
const AGAIN = { type: 'text', text: { body: 'Start' } };

let people = 0;

function someone(): string {
  people += 1;
  return `1202555${6_000 + people}`;
}

let messages = 0;

function valueBody(field: string, value: object, number = stack.number): Buffer {
  const metadata = { display_phone_number: '12025550100', phone_number_id: number };
  const change = { field, value: { messaging_product: 'whatsapp', metadata, ...value } };
  return Buffer.from(JSON.stringify({ entry: [{ id: stack.wabaId, time: messages, changes: [change] }] }));
}

function messageOf(from: string, content: object, at = 0) {
  messages += 1;
  return { from, id: `wamid.word${messages}`, timestamp: String(START + at), ...content };
}

const wrote = (from: string, content: object, at = 0) =>
  valueBody('messages', { contacts: [{ wa_id: from }], messages: [messageOf(from, content, at)] });

const reported = (phone: string, value: 'stop' | 'resume', at: number) =>
  valueBody('user_preferences', {
    contacts: [{ wa_id: phone }],
    user_preferences: [{ wa_id: phone, category: 'marketing_messages', value, timestamp: START + at }],
  });

async function call(method: 'GET' | 'POST' | 'PUT', path: string, payload?: object) {
  const { authorization } = stack;
  const url = `/api/external/opt-outs${path}`;
  const answer = await stack.app.inject({
    method,
    url,
    headers: { authorization },
    ...(payload && { payload }),
  });
  return { status: answer.statusCode, body: answer.json() };
}

const setWords = (words: object) => call('PUT', '/words', words);

/** Source, scope and beginning of what holds. */
async function optOutsOf(customer: string): Promise<string[]> {
  const { body } = await call('POST', '/search', { customer });
  return body.data.map((one: { source: string; scope: string; since: string }) => {
    const seconds = Date.parse(one.since) / 1_000 - START;
    return `${one.source} ${one.scope}${seconds < 1_000 ? ` since ${seconds}` : ''}`;
  });
}

/** The events of the type `preference`, in their order. */
async function preferences() {
  const events = (await storedEvents(stack.database)).filter(
    ({ type, wabaId }) => type === 'preference' && wabaId === stack.wabaId,
  );
  return events.map(({ sequence, eventId, body }) => ({ sequence, eventId, ...JSON.parse(body ?? '') }));
}

const told = async () =>
  (await preferences()).map(({ data: { state, scope, source } }) => `${state} ${scope} ${source}`);

const marketing = (to: string) => ({
  to,
  type: 'template',
  template: { name: 'summer_offer', language: { code: 'en-US' } },
});

beforeEach(async () => {
  expect(await setWords({ optOutWords: ['STOP', 'Straße'], optInWords: ['start'] })).toMatchObject({
    status: 200,
  });
});

describe('a word of a customer', () => {
  test('ends marketing of that number, and the message comes as always', async () => {
    const phone = someone();
    await takeIn(stack.database, wrote(phone, STOP, 5));
    expect(await optOutsOf(phone)).toEqual(['keyword marketing since 5']);
    const { status, body } = await stack.send(marketing(phone));
    expect([status, body.error?.optOut?.source]).toEqual([422, 'keyword']);
    const elsewhere = await stack.send({ ...marketing(phone), phoneNumberId: stack.secondNumber });
    expect(elsewhere.status).toBeLessThan(300);
    const types = (await storedEvents(stack.database)).filter(({ wabaId }) => wabaId === stack.wabaId);
    expect(types.map(({ type }) => type)).toEqual(expect.arrayContaining(['message', 'preference']));
    await takeIn(stack.database, wrote(phone, AGAIN, 9));
    expect(await optOutsOf(phone)).toEqual([]);
  });

  test.each([
    ['other letters', { type: 'text', text: { body: '\u00a0STRASSE\n' } }, true],
    ['the button of a template', { type: 'button', button: { text: 'Stop', payload: 'x' } }, true],
    [
      'a reply button',
      {
        type: 'interactive',
        interactive: { type: 'button_reply', button_reply: { id: 'x', title: 'STOP' } },
      },
      true,
    ],
    [
      'a row of a list',
      { type: 'interactive', interactive: { type: 'list_reply', list_reply: { id: 'x', title: 'stop' } } },
      true,
    ],
    ['more words', { type: 'text', text: { body: 'stop it' } }, false],
    ['the payload of a button', { type: 'button', button: { text: 'No', payload: 'stop' } }, false],
    ['a caption', { type: 'image', image: { id: '1', mime_type: 'image/png', caption: 'stop' } }, false],
    ['a word in a group', { ...STOP, group_id: 'group-1' }, false],
    ['no text at all', { type: 'text', text: { body: 7 } }, false],
  ])('%s: %#', async (_name, content, isOne) => {
    const phone = someone();
    await takeIn(stack.database, wrote(phone, content, 1));
    expect(await optOutsOf(phone)).toEqual(isOne ? ['keyword marketing since 1'] : []);
  });

  test('counts once, whatever is repeated', async () => {
    const phone = someone();
    const body = wrote(phone, STOP, 1);
    await takeIn(stack.database, body, body);
    await call('POST', '/end', { customer: phone, evidence: 'form 7' });
    await takeIn(stack.database, body);
    expect(await optOutsOf(phone)).toEqual([]);
    expect(await told()).toEqual(['stop marketing keyword', 'resume marketing api']);
  });

  test('decides by its time, in whatever order words come, one by one and in one turn', async () => {
    const story = [
      { content: STOP, at: 1 },
      { content: AGAIN, at: 3 },
      { content: STOP, at: 5 },
      { content: STOP, at: 7 },
    ];
    for (const order of orders(story))
      for (const together of [false, true]) {
        const phone = someone();
        const bodies = order.map(({ content, at }) => wrote(phone, content, at));
        if (together) await takeIn(stack.database, ...bodies);
        else for (const body of bodies) await takeIn(stack.database, body);
        expect([order.map(({ at }) => at), await optOutsOf(phone)]).toEqual([
          order.map(({ at }) => at),
          ['keyword marketing since 5'],
        ]);
      }
  });

  test('that was sent before the tenant ended the opt-out, and comes later, changes nothing', async () => {
    const phone = someone();
    await takeIn(stack.database, wrote(phone, STOP, 1));
    await call('POST', '/end', { customer: phone, evidence: 'form 7' });
    await takeIn(stack.database, wrote(phone, STOP, 2));
    expect(await optOutsOf(phone)).toEqual([]);
    const now = Math.floor(Date.now() / 1_000) + 1 - START;
    await call('POST', '', { customer: phone, scope: 'all' });
    expect(await optOutsOf(phone)).toEqual(['api all']);
    await call('POST', '/end', { customer: phone, evidence: 'form 8' });
    await takeIn(stack.database, wrote(phone, STOP, now));
    expect(await optOutsOf(phone)).toEqual(['keyword marketing']);
  });

  test('counts for nothing where the message is a copy for another responder, or of the business itself', async () => {
    const phone = someone();
    const standby = valueBody('standby', {
      standby: { contacts: [{ wa_id: phone }], messages: [messageOf(phone, STOP)] },
    });
    const echo = valueBody('smb_message_echoes', {
      message_echoes: [{ ...messageOf('12025550100', STOP), to: phone }],
    });
    await takeIn(stack.database, standby, echo);
    expect(await optOutsOf(phone)).toEqual([]);
    await setWords({ optOutWords: [], optInWords: [] });
    await takeIn(stack.database, wrote(phone, STOP));
    expect(await optOutsOf(phone)).toEqual([]);
    expect(await told()).toEqual([]);
  });

  test('ends what the tenant noted about marketing at that number, and nothing else', async () => {
    const after = Math.floor(Date.now() / 1_000) - START;
    for (const [noted, left] of [
      [{ scope: 'marketing', phoneNumberId: stack.number }, []],
      [{ scope: 'all', phoneNumberId: stack.number }, ['api all']],
      [{ scope: 'marketing' }, ['api marketing']],
    ] as const) {
      const phone = someone();
      await call('POST', '', { customer: phone, reason: 'asked', ...noted });
      await takeIn(stack.database, wrote(phone, AGAIN, 1));
      expect(await optOutsOf(phone)).toHaveLength(1);
      await takeIn(stack.database, wrote(phone, AGAIN, after + 2));
      expect([noted, await optOutsOf(phone)]).toEqual([noted, left]);
      await takeIn(stack.database, wrote(phone, STOP, after + 3));
      expect((await optOutsOf(phone)).includes('api all')).toBe(left.includes('api all' as never));
    }
    const phone = someone();
    await takeIn(stack.database, reported(phone, 'stop', 1), wrote(phone, AGAIN, 5));
    expect(await optOutsOf(phone)).toEqual(['upstream marketing since 1']);
  });

  test('is kept of an erased customer who comes back, and ends by a word of theirs', async () => {
    const phone = someone();
    await takeIn(stack.database, wrote(phone, STOP, 1));
    const { database, config } = stack;
    const tools = {
      database,
      secretBox: testSecretBox,
      encryptionKeys: parseEncryptionKeys(config.encryptionKeys),
      objectStore: openObjectStore(config.objectStore),
      cancelWorkflows: async () => undefined,
      actor: { name: 'test', requestId: null, ip: null },
    };
    onTestFinished(() => tools.objectStore.close());
    const { erasureId } = await eraseCustomer(tools, stack.wabaId, { phone });
    await eraseAll(tools, erasureId);
    expect(await preferences()).toEqual([]);
    await takeIn(stack.database, wrote(phone, { type: 'text', text: { body: 'Hello' } }, 5));
    expect(await optOutsOf(phone)).toEqual(['keyword marketing since 1']);
    await takeIn(stack.database, wrote(phone, AGAIN, 9));
    expect(await optOutsOf(phone)).toEqual([]);
  });
});

describe('the event preference', () => {
  test('comes for every source and change, in one order, to endpoints that ask for it', async () => {
    const phone = someone();
    const { database, wabaId } = stack;
    await addEndpoint(database, wabaId, 'https://plain.example/hook');
    const asking = await addEndpoint(database, wabaId, 'https://asking.example/hook', ['preference']);
    await takeIn(database, reported(phone, 'stop', 5));
    await takeIn(
      database,
      reported(phone, 'stop', 6),
      reported(phone, 'stop', 1),
      reported(phone, 'resume', 2),
    );
    await takeIn(database, wrote(phone, STOP, 7));
    await call('POST', '', { customer: phone, scope: 'all', phoneNumberId: stack.number });
    await call('POST', '', { customer: phone, scope: 'all', phoneNumberId: stack.number, reason: 'again' });
    await call('POST', '/end', { customer: phone, evidence: 'form 7' });
    await takeIn(database, reported(phone, 'resume', 9));
    const events = await preferences();
    expect(await told()).toEqual([
      'stop marketing upstream',
      'stop marketing keyword',
      'stop all api',
      'resume all api',
      'resume marketing upstream',
    ]);
    expect(events.map(({ sequence }) => sequence)).toEqual(['1', '2', '3', '4', '5']);
    expect(new Set(events.map(({ eventId }) => eventId)).size).toBe(1);
    expect(events[1]).toMatchObject({
      eventType: 'preference',
      phoneNumberId: stack.number,
      data: {
        customer: { waId: phone, userId: null },
        phoneNumberId: stack.number,
        scope: 'marketing',
        state: 'stop',
        source: 'keyword',
        since: new Date((START + 7) * 1_000).toISOString(),
      },
    });
    const queued = await query<{ endpointId: string; type: string }>(
      database,
      `select q.endpoint_id as "endpointId", e.event_type as type from delivery_queue q join events e on e.id = q.event_uuid
        where e.waba_id = :wabaId and e.event_type = 'preference'`,
      { wabaId },
    );
    expect(queued).toEqual(events.map(() => ({ endpointId: asking.id, type: 'preference' })));
  });

  test('names no number where it is about all, and comes of a refusal and of the portal’s own too', async () => {
    const phone = someone();
    await call('POST', '', { customer: phone, scope: 'marketing' });
    expect(await preferences()).toMatchObject([
      { phoneNumberId: null, data: { phoneNumberId: null, source: 'api' } },
    ]);
    const other = someone();
    await stack.addFault({ match: 'send', kind: 'status', status: 400, code: 131050, times: 1 });
    await stack.sendToEnd(marketing(other));
    expect((await told()).at(-1)).toBe('stop marketing error_131050');
  });
});

describe('the words', () => {
  test('are each kept once, a list that is left out stays, and one that cannot be is refused', async () => {
    expect(await setWords({ optOutWords: [' Baja ', 'BAJA'] })).toEqual({
      status: 200,
      body: { optOutWords: ['BAJA'], optInWords: ['start'] },
    });
    expect((await call('GET', '/words')).body).toEqual({ optOutWords: ['BAJA'], optInWords: ['start'] });
    const many = Array.from({ length: 21 }, (_none, n) => `word ${n}`);
    for (const [words, param] of [
      [{ optInWords: ['baja'] }, 'optInWords'],
      [{ optOutWords: many }, 'optOutWords'],
      [{ optOutWords: ['a\nb'] }, 'optOutWords'],
    ] as const) {
      expect([words, await setWords(words)]).toEqual([
        words,
        expect.objectContaining({
          status: 400,
          body: { error: expect.objectContaining({ param: expect.stringContaining(param) }) },
        }),
      ]);
    }
    const [entry] = await query<{ detail: object }>(
      stack.database,
      `select detail from audit_log where waba_id = :wabaId and action = 'opt_out_words.set' order by id desc limit 1`,
      { wabaId: stack.wabaId },
    );
    expect(entry?.detail).toEqual({ optOutWords: 'BAJA', optInWords: 'start' });
  });
});
