import { beforeEach, describe, expect, test } from 'vitest';
import { execute } from '../../../../src/platform/postgres/sql.ts';
import { takeIn } from '../../../support/take-in.ts';
import { apiOnRecordingUpstream, type UpstreamAccount } from './recording-upstream.ts';

const { api, upstream } = apiOnRecordingUpstream();
let own: UpstreamAccount;
let conversation: string;

const CUSTOMER = '12025550143';
const SECONDS = Math.floor(Date.now() / 1_000) - 60;
const DONE = { json: { messaging_product: 'whatsapp', request_id: 'r1' } };

const value = (field: string, members: object) => {
  const metadata = { display_phone_number: '12025550100', phone_number_id: own.number };
  const change = { field, value: { messaging_product: 'whatsapp', metadata, ...members } };
  return Buffer.from(JSON.stringify({ entry: [{ id: own.wabaId, changes: [change] }] }));
};

const message = (seconds: number, members: object = {}) => ({
  from: CUSTOMER,
  id: `wamid.${seconds}${JSON.stringify(members).length}`,
  timestamp: String(seconds),
  type: 'text',
  text: { body: 'Hello' },
  ...members,
});

/** A copy: another responder has the conversation. */
const copy = (seconds: number, members: object = {}) =>
  value('standby', { standby: { messages: [message(seconds, members)] } });

const passed = (seconds: number) =>
  value('messaging_handovers', {
    sender: { phone_number: CUSTOMER },
    recipient: { phone_number_id: own.number },
    type: 'control_passed',
    timestamp: String(seconds),
    control_passed: { new_owner_role: 'escalation' },
  });

async function ask(method: 'GET' | 'POST', url: string, body?: unknown, bearer = own.key) {
  const response = await api.app.inject({
    method,
    url,
    headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
    ...(body !== undefined && { payload: JSON.stringify(body) }),
  });
  return { status: response.statusCode, json: response.json(), headers: response.headers };
}

const control = (body: unknown, id = conversation) =>
  ask('POST', `/api/external/conversations/${id}/thread`, body);

const facade = (body: unknown, number = own.number) =>
  ask('POST', `/graph/v26.0/${number}/thread_control`, body);

const thread = async () => (await ask('GET', `/api/external/conversations/${conversation}`)).json.thread;

const bodies = () => upstream.calls.map(({ body }) => JSON.parse(body));

beforeEach(async () => {
  own = await upstream.newAccount(api.database);
  await execute(api.database, `update api_keys set scopes = '{graph,send,read}' where waba_id = :wabaId`, {
    wabaId: own.wabaId,
  });
  await takeIn(api.database, copy(SECONDS));
  const { json } = await ask('GET', '/api/external/conversations');
  conversation = json.data[0].id;
  upstream.reply(() => DONE);
  upstream.calls.length = 0;
});

describe('a conversation of several responders', () => {
  test('is taken, passed and released by its id: upstream is called once, in its own form, and the owner is noted', async () => {
    expect(await thread()).toMatchObject({ owner: 'other' });
    const taken = await control({ action: 'take' });
    expect([taken.status, taken.json]).toEqual([
      200,
      { thread: { owner: 'us', role: null, since: expect.stringMatching(/Z$/) } },
    ]);
    expect(await thread()).toEqual(taken.json.thread);
    const metadata = 'The customer asks for a refund';
    expect((await control({ action: 'pass', metadata })).json.thread).toMatchObject({ owner: 'other' });
    expect((await control({ action: 'release' })).json).toEqual({ thread: null });
    expect(await thread()).toBe(null);
    expect(upstream.calls.map(({ method, url }) => [method, url])).toEqual(
      Array(3).fill(['POST', `/v26.0/${own.number}/thread_control`]),
    );
    const to = { messaging_product: 'whatsapp', to: CUSTOMER };
    expect(bodies()).toEqual([
      { ...to, action: 'take' },
      { ...to, action: 'pass', metadata },
      { ...to, action: 'release' },
    ]);
  });

  test('with a customer without a phone number is named by the user id, that of a group cannot be', async () => {
    const userId = 'US.13491208655302741918';
    const stranger = { from: undefined, from_user_id: userId };
    await takeIn(api.database, copy(SECONDS + 1, stranger));
    const { data } = (await ask('GET', '/api/external/conversations')).json;
    const { id } = data.find((one: { customer: { userId: string } }) => one.customer.userId === userId);
    expect((await control({ action: 'pass' }, id)).status).toBe(200);
    expect(bodies()).toEqual([{ messaging_product: 'whatsapp', recipient: userId, action: 'pass' }]);
    await takeIn(api.database, value('messages', { messages: [message(SECONDS, { group_id: 'G1' })] }));
    const group = (await ask('GET', '/api/external/conversations')).json.data.find(
      (one: { group?: object }) => one.group !== undefined,
    );
    const refused = await control({ action: 'take' }, group.id);
    expect([refused.status, refused.json.error.code]).toEqual([422, 'conversation_of_group']);
  });

  test('is not touched by a body that is wrong, an id that is not there and a key of others', async () => {
    const other = await upstream.newAccount(api.database);
    await execute(api.database, `update api_keys set scopes = '{send}' where waba_id = :wabaId`, {
      wabaId: other.wabaId,
    });
    upstream.calls.length = 0;
    const url = `/api/external/conversations/${conversation}/thread`;
    expect((await ask('POST', url, { action: 'take' }, other.key)).status).toBe(404);
    expect((await control({ action: 'take' }, '123456789012')).status).toBe(404);
    for (const body of [
      {},
      { action: 'lend' },
      { action: 'take', to: '12025550199' },
      { action: 'pass', metadata: 'x'.repeat(2_001) },
    ])
      expect([body, (await control(body)).status]).toEqual([body, 400]);
    expect(upstream.calls).toEqual([]);
  });

  test.each([
    [400, {}],
    [500, {}],
    [400, { is_transient: true }],
    [429, {}],
  ])(
    'is refused by upstream for the role: %s %j is final, explained, and changes nothing',
    async (status, more) => {
      const before = await thread();
      const error = { message: '(#2494191) Not allowed', type: 'OAuthException', code: 2494191, ...more };
      upstream.reply(() => ({ status, json: { error } }));
      const refused = await control({ action: 'take' });
      expect([refused.status, refused.json.error]).toMatchObject([
        424,
        { code: 'upstream_refused', advice: expect.stringContaining('escalation partner'), upstream: error },
      ]);
      expect(refused.headers['retry-after']).toBeUndefined();
      const byFacade = await facade({ to: CUSTOMER, action: 'take' });
      expect([byFacade.status, byFacade.json]).toEqual([400, { error }]);
      expect(await thread()).toEqual(before);
      expect(upstream.calls).toHaveLength(2);
    },
  );

  test('has an unknown owner after a call without a response, which is not repeated', async () => {
    for (const reply of ['hang up', { status: 502, json: {} }] as const) {
      upstream.reply(() => reply);
      upstream.calls.length = 0;
      const lost = await control({ action: 'take' });
      expect([lost.status, lost.json.error.code]).toEqual([502, 'outcome_unknown']);
      expect(upstream.calls).toHaveLength(1);
      expect(await thread()).toMatchObject({ owner: 'unknown' });
      upstream.reply(() => DONE);
      await control({ action: 'take' });
    }
    upstream.reply(() => ({ status: 400, json: { error: { message: 'Busy', code: 4 } } }));
    expect((await control({ action: 'pass' })).status).toBe(503);
    expect(await thread()).toMatchObject({ owner: 'us' });
  });

  test('follows the call, whatever second upstream’s reports before and after it are of', async () => {
    const now = Math.floor(Date.now() / 1_000);
    await takeIn(api.database, copy(now + 30), passed(now));
    expect((await control({ action: 'pass' })).json.thread).toMatchObject({ owner: 'other' });
    expect((await control({ action: 'take' })).json.thread).toMatchObject({ owner: 'us' });
    const { since } = await thread();
    await takeIn(api.database, copy(Math.ceil(Date.parse(since) / 1_000) + 1));
    // Of a time in the future, which counts as now.
    expect(await thread()).toMatchObject({ owner: 'other' });
  });
});

test('a call of ours counts more than a report of a clock that is ahead of ours', async () => {
  await takeIn(api.database, passed(SECONDS + 1));
  await execute(
    api.database,
    `update conversations set thread_owner = 'other', thread_since = now() + interval '10 seconds' where id = :conversation`,
    { conversation },
  );
  expect((await control({ action: 'take' })).json.thread).toMatchObject({ owner: 'us' });
  expect(await thread()).toMatchObject({ owner: 'us' });
});

describe('thread_control of the facade', () => {
  test('is passed on with what upstream has for it, and answered as upstream answers', async () => {
    const body = {
      messaging_product: 'whatsapp',
      to: Number(CUSTOMER),
      action: 'pass',
      metadata: 'Refund',
      control_pass: { target_role: 'ai_agent' },
    };
    expect(await facade(body)).toMatchObject({ status: 200, json: DONE.json });
    expect(bodies()).toEqual([{ ...body, to: CUSTOMER }]);
    expect(await thread()).toMatchObject({ owner: 'other', role: 'ai_agent' });
    expect((await facade({ to: `+${CUSTOMER}`, action: 'release' })).status).toBe(200);
    expect(await thread()).toBe(null);
    expect((await facade({ recipient: 'US.13491208655302741918', action: 'take' })).status).toBe(200);
    expect((await facade({ to: '12025550177', action: 'take' })).status).toBe(200);
  });

  test('takes nothing that could be another call, and no number of others', async () => {
    const foreign = await upstream.newAccount(api.database);
    upstream.calls.length = 0;
    const one = { to: CUSTOMER, action: 'take' };
    for (const body of [
      [],
      { to: CUSTOMER },
      { ...one, action: 'lend' },
      { ...one, access_token: 'x' },
      { ...one, recipient: 'US.13491208655302741918' },
      { action: 'take', recipient: CUSTOMER },
      { action: 'take', to: 'US.13491208655302741918' },
      { action: 'take' },
      { ...one, metadata: 'x'.repeat(2_001) },
    ])
      expect([body, (await facade(body)).status]).toEqual([body, 400]);
    expect((await facade(one, foreign.number)).status).toBe(403);
    expect((await facade(one, own.wabaId)).status).toBe(403);
    expect(upstream.calls).toEqual([]);
  });
});
