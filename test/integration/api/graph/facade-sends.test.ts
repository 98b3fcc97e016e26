import { createHash } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { takeIn } from '../../../support/take-in.ts';
import { fixtureBodyTo } from '../../../support/upstream-fixtures.ts';
import { sendingStackOfFile } from '../../messages/send/sending-stack.ts';
import { addFacadeKey } from './facade-key.ts';
import { receivedPicture } from './received-picture.ts';

const stack = sendingStackOfFile({ HELIOGRAPH_SEND_TIMEOUT_MS: '4000' });
let key: string;

beforeEach(async () => {
  key = await addFacadeKey(stack.database, stack.wabaId);
});

let customers = 0;
const customer = () => `1202557${String(1_000 + customers++)}`;

/** Sends to a path of the tenant's number, such as `messages`. */
async function post(path: string, body: unknown, headers: Record<string, string> = {}) {
  const answer = await stack.app.inject({
    method: 'POST',
    url: `/graph/v26.0/${stack.number}/${path}`,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    payload: JSON.stringify(body),
  });
  return { status: answer.statusCode, json: answer.json(), headers: answer.headers };
}

const get = async (url: string, bearer = key) => {
  const answer = await stack.app.inject({ url, headers: { authorization: `Bearer ${bearer}` } });
  return { status: answer.statusCode, json: () => answer.json(), bytes: answer.rawPayload };
};

const text = (to: string, body = 'Hello') => ({
  messaging_product: 'whatsapp',
  recipient_type: 'individual',
  to,
  type: 'text',
  text: { body },
});

describe('a message sent through the facade', () => {
  test('is a message of its conversation, and is answered as upstream does', async () => {
    const to = customer();
    const { status, json } = await post('messages', text(`+${to}`));
    expect([status, json]).toEqual([
      200,
      {
        messaging_product: 'whatsapp',
        contacts: [{ input: `+${to}`, wa_id: to }],
        messages: [{ id: expect.stringMatching(/^wamid\./) }],
      },
    ]);
    const [stored] = await query<{ direction: string; conversation: string }>(
      stack.database,
      'select direction, conversation_id as conversation from messages where upstream_id = :id',
      { id: json.messages[0].id },
    );
    expect(stored).toEqual({ direction: 'outbound', conversation: expect.stringMatching(/^\d+$/) });
  });

  test('to marketing_messages goes to that call, with the members that only it has', async () => {
    const body = {
      ...text(customer()),
      product_policy: 'CLOUD_API_FALLBACK',
      message_activity_sharing: true,
    };
    expect((await post('marketing_messages', body)).status).toBe(200);
    expect((await stack.sent())[0]?.body).toMatchObject({
      product_policy: 'CLOUD_API_FALLBACK',
      message_activity_sharing: true,
    });
    const { data } = (await (await fetch(`${stack.sandboxUrl}/sandbox/requests`)).json()) as {
      data: { path: string }[];
    };
    expect(data.map(({ path }) => path)).toContain(`/v26.0/${stack.number}/marketing_messages`);
  });

  test('goes out once under one Idempotency-Key', async () => {
    const body = text(customer());
    const headers = { 'idempotency-key': 'order-1' };
    const first = await post('messages', body, headers);
    const again = await post('messages', body, headers);
    expect(again.json).toEqual(first.json);
    expect(again.headers['idempotent-replayed']).toBe('true');
    expect(await stack.sent()).toHaveLength(1);
  });

  test('that upstream refuses is answered with its own error', async () => {
    await stack.addFault({ match: 'send', kind: 'status', status: 400, code: 131_047 });
    const { status, json } = await post('messages', text(customer()));
    expect([status, json.error.code]).toEqual([400, 131047]);
    expect(json.error.message).toEqual(expect.any(String));
  });

  test('that is none is refused in upstream’s form', async () => {
    for (const wrong of [
      [],
      'x',
      { ...text('1'), to: undefined },
      { ...text(customer()), text: undefined },
    ]) {
      const { status, json } = await post('messages', wrong);
      expect([status, json.error.code, json.error.type]).toEqual([400, 100, 'OAuthException']);
    }
    expect(await stack.sent()).toEqual([]);
  });

  test.each([{ access_token: 'EAAother' }, { method: 'delete' }, { fields: 'id' }, { batch: '[]' }])(
    'with %j is refused, and goes nowhere',
    async (extra) => {
      for (const path of ['messages', 'marketing_messages']) {
        const { status, json } = await post(path, { ...text(customer()), ...extra });
        expect([status, json.error.code]).toEqual([400, 100]);
      }
      expect(await stack.sent()).toEqual([]);
    },
  );

  test('a read receipt marks the message in its conversation too', async () => {
    await takeIn(stack.database, fixtureBodyTo(stack, 'in_text'));
    const [message] = await query<{ id: string }>(
      stack.database,
      `select upstream_id as id from messages where direction = 'inbound' and read_at is null and waba_id = :wabaId`,
      { wabaId: stack.wabaId },
    );
    const receipt = { messaging_product: 'whatsapp', status: 'read', message_id: message?.id };
    expect(await post('messages', receipt)).toMatchObject({ status: 200, json: { success: true } });
    const read = await query(
      stack.database,
      'select 1 from messages where upstream_id = :id and read_at is not null',
      { id: message?.id ?? '' },
    );
    expect(read).toHaveLength(1);
  });
});

const JPEG = Buffer.concat([
  Buffer.from('ffd8ffe000104a46494600010100000100010000', 'hex'),
  Buffer.alloc(64, 7),
]);

async function upload(): Promise<string> {
  const form = new FormData();
  form.set('messaging_product', 'whatsapp');
  form.set('type', 'image/jpeg');
  form.set('file', new Blob([JPEG], { type: 'image/jpeg' }), 'mug.jpg');
  const encoded = new Response(form);
  const answer = await stack.app.inject({
    method: 'POST',
    url: `/graph/v26.0/${stack.number}/media`,
    headers: { authorization: `Bearer ${key}`, 'content-type': encoded.headers.get('content-type') ?? '' },
    payload: Buffer.from(await encoded.arrayBuffer()),
  });
  expect(answer.statusCode).toBe(200);
  expect(Object.keys(answer.json())).toEqual(['id']);
  return answer.json().id;
}

describe('a file', () => {
  test('is uploaded, described, downloaded, sent and deleted by its id', async () => {
    const id = await upload();
    const { status, json } = await get(`/graph/v26.0/${id}`);
    const sha256 = createHash('sha256').update(JPEG).digest('hex');
    const described = { messaging_product: 'whatsapp', id, mime_type: 'image/jpeg', sha256 };
    expect([status, json()]).toEqual([
      200,
      { ...described, file_size: JPEG.length, url: expect.any(String) },
    ]);
    const { pathname } = new URL(json().url);
    expect((await get(pathname)).bytes).toEqual(JPEG);
    const image = { ...text(customer()), type: 'image', text: undefined, image: { id } };
    expect((await post('messages', image)).status).toBe(200);
    expect((await stack.sent())[0]?.body).toMatchObject({ image: { id: expect.stringMatching(/^\d+$/) } });
    const remove = {
      method: 'DELETE',
      url: `/graph/v26.0/${id}`,
      headers: { authorization: `Bearer ${key}` },
    };
    expect((await stack.app.inject(remove as never)).json()).toEqual({ success: true });
    for (const path of [`/graph/v26.0/${id}`, pathname]) expect((await get(path)).status).toBe(403);
  });

  test('that a customer sent is described by upstream’s id of it, with an address of ours', async () => {
    const { media: id, objectKey } = await receivedPicture(stack.database, stack);
    const { status, json } = await get(`/graph/v26.0/${id}`);
    expect(status).toBe(200);
    const url = expect.stringContaining(`/received_media/${objectKey}`);
    expect(json()).toMatchObject({ id, file_size: 5, url });
    const other = await addFacadeKey(stack.database, (await stack.newTenant()).wabaId);
    expect((await get(`/graph/v26.0/${id}`, other)).status).not.toBe(200);
  });
});

describe('a message as other clients of upstream write it', () => {
  async function asForm(form: Record<string, string> | string, headers: Record<string, string> = {}) {
    const answer = await stack.app.inject({
      method: 'POST',
      url: `/graph/v26.0/${stack.number}/messages`,
      headers: {
        authorization: `OAuth ${key}`,
        'content-type': 'application/x-www-form-urlencoded',
        ...headers,
      },
      payload: typeof form === 'string' ? form : new URLSearchParams(form).toString(),
    });
    return { status: answer.statusCode, json: answer.json() };
  }

  test('is sent when it is a form, with OAuth before the key', async () => {
    const to = customer();
    const form = { messaging_product: 'whatsapp', recipient_type: 'individual', to: `+${to}`, type: 'text' };
    const { status, json } = await asForm({ ...form, text: '{"body":"café & co","preview_url":false}' });
    expect([status, json.contacts]).toEqual([200, [{ input: `+${to}`, wa_id: to }]]);
    expect((await stack.sent())[0]?.body).toMatchObject({ text: { body: 'café & co', preview_url: false } });
    const buttons = {
      type: 'interactive',
      interactive:
        '{"type":"button","body":{"text":"?"},"action":{"buttons":[{"type":"reply","reply":{"id":"1","title":"Yes"}}]}}',
    };
    expect((await asForm({ ...form, ...buttons })).status).toBe(200);
  });

  test('is refused in upstream’s form when the form cannot be read', async () => {
    const to = customer();
    for (const form of [
      `to=${to}&text={"body":"caf%E9"}`,
      `to=${to}&text=x`,
      `to=${to}${'&a=1'.repeat(500)}`,
      '',
    ]) {
      const { status, json } = await asForm(form);
      expect([form.slice(0, 40), status, json.error.code]).toEqual([form.slice(0, 40), 400, 100]);
    }
    expect((await asForm('', { authorization: `OAuth ${'x'.repeat(67)}` })).status).toBe(401);
    expect(await stack.sent()).toEqual([]);
  });

  test('loses members that are null at every depth, and no entry of a list', async () => {
    const body = {
      ...text(customer()),
      context: null,
      text: { body: 'Hello', preview_url: null },
      biz_opaque_callback_data: null,
    };
    expect((await post('messages', body)).status).toBe(200);
    const list = {
      ...text(customer()),
      type: 'interactive',
      text: null,
      interactive: {
        type: 'button',
        header: null,
        body: { text: '?', format: null },
        action: { buttons: [{ type: 'reply', reply: { id: '1', title: 'Yes', icon: null } }], name: null },
      },
    };
    expect((await post('messages', list)).status).toBe(200);
    const sent = (await stack.sent()).map((one) => JSON.stringify(one.body));
    expect(sent).toHaveLength(2);
    expect(sent.filter((json) => json.includes('null'))).toEqual([]);
    expect(
      (await post('messages', { ...list, interactive: { ...list.interactive, action: { buttons: [null] } } }))
        .status,
    ).toBe(400);
  });
});
