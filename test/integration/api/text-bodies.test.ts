import { expect, test } from 'vitest';
import { query } from '../../../src/platform/postgres/sql.ts';
import { apiOfFile, freshKeyHolder, signed } from './api-harness.ts';
import { addFacadeKey } from './graph/facade-key.ts';

const api = apiOfFile();

type Given = {
  method?: 'POST' | 'PATCH' | 'DELETE';
  url: string;
  headers?: object;
  payload?: Buffer | string;
};

async function ask(authorization: string, { method = 'POST', url, headers = {}, payload }: Given) {
  const answer = await api.app.inject({
    method,
    url,
    headers: { authorization, 'content-type': 'application/json', ...headers },
    ...(payload !== undefined && { payload }),
  });
  return { status: answer.statusCode, error: answer.body === '' ? undefined : answer.json().error, answer };
}

const LATIN1 = (text: string) => Buffer.from(text, 'latin1');

const endpoint = (description: string) => ({
  url: '/api/external/webhook-endpoints',
  payload: LATIN1(JSON.stringify({ url: 'https://tenant.example/hook', description })),
});

test('a body that is no UTF-8 is refused at every door, and nothing of it is stored', async () => {
  const { authorization, number, wabaId } = await freshKeyHolder(api.database);
  const facadeKey = await addFacadeKey(api.database, wabaId);
  const message = { to: '12025550143', type: 'text', text: { body: 'café' } };
  const doors: [string, Given][] = [
    [
      authorization,
      {
        url: '/api/external/messages',
        payload: LATIN1(JSON.stringify({ phoneNumberId: number, ...message })),
      },
    ],
    [authorization, endpoint('café')],
    [authorization, { url: '/api/external/conversations/search', payload: LATIN1('{"customer":"é"}') }],
    [
      `Bearer ${facadeKey}`,
      { url: `/graph/v26.0/${number}/messages`, payload: LATIN1(JSON.stringify(message)) },
    ],
    [
      `Bearer ${facadeKey}`,
      { url: `/graph/v26.0/${number}/whatsapp_business_profile`, payload: LATIN1('{"about":"é"}') },
    ],
  ];
  for (const [key, door] of doors) {
    const { status, answer } = await ask(key, door);
    expect([door.url, status, answer.body]).toEqual([door.url, 400, expect.stringContaining('not UTF-8')]);
  }
  const stored = await query(
    api.database,
    `select 1 from messages where waba_id = :wabaId union all select 1 from webhook_endpoints where waba_id = :wabaId`,
    { wabaId },
  );
  expect(stored).toEqual([]);
});

const FORM = 'application/x-www-form-urlencoded';

test.each([
  ['as they are', LATIN1('about=caf\xe9')],
  ['percent-encoded', 'about=caf%e9'],
  ['in a name', 'caf%E9=x'],
  ['half a character', 'about=%C3'],
  ['a surrogate', 'about=%ED%A0%80'],
])('a form whose bytes are no UTF-8 is refused by the facade: %s', async (_, payload) => {
  const { number, wabaId } = await freshKeyHolder(api.database);
  const key = `Bearer ${await addFacadeKey(api.database, wabaId)}`;
  for (const edge of ['messages', 'whatsapp_business_profile']) {
    const url = `/graph/v26.0/${number}/${edge}`;
    const { status, answer } = await ask(key, { url, headers: { 'content-type': FORM }, payload });
    expect([edge, status, answer.body]).toEqual([edge, 400, expect.stringContaining('not UTF-8')]);
  }
});

test.each([
  ['latin1', { 'content-type': 'application/json; charset=iso-8859-1' }],
  ['quoted', { 'content-type': 'application/json;charset="windows-1252"' }],
  ['UTF-16', { 'content-type': 'application/json; charset=utf-16le' }],
  ['gzip', { 'content-encoding': 'gzip' }],
  ['br', { 'content-encoding': 'BR' }],
])('another charset or a compressed body is refused by name: %s', async (_, headers) => {
  const { authorization, number, wabaId } = await freshKeyHolder(api.database);
  const facadeKey = await addFacadeKey(api.database, wabaId);
  const asked = [
    await ask(authorization, { ...endpoint('x'), headers }),
    await ask(authorization, { url: '/api/external/messages', headers, payload: '{}' }),
    await ask(`Bearer ${facadeKey}`, { url: `/graph/v26.0/${number}/messages`, headers, payload: '{}' }),
  ];
  expect(asked.map(({ status }) => status)).toEqual([415, 415, 415]);
  expect(asked[0]?.error.code).toBe('unsupported_media_type');
  // Who may not call learns nothing else.
  expect((await ask('Bearer x', { ...endpoint('x'), headers })).status).toBe(401);
});

test.each([
  [
    'a byte order mark',
    {
      payload: Buffer.from(
        `\ufeff${JSON.stringify({ url: 'https://tenant.example/bom', description: 'é' })}`,
      ),
    },
  ],
  ['utf8 by another name', { headers: { 'content-type': 'application/json; charset="UTF8"' } }],
  ['ASCII', { headers: { 'content-type': 'application/json; charset=us-ascii' } }],
  ['identity', { headers: { 'content-encoding': 'identity' } }],
])('a body with %s is read', async (_, given) => {
  const { authorization } = await freshKeyHolder(api.database);
  const payload = JSON.stringify({ url: 'https://tenant.example/bom', description: 'é' });
  const { status, answer } = await ask(authorization, {
    url: '/api/external/webhook-endpoints',
    payload,
    ...given,
  });
  expect([status, answer.json().description]).toEqual([201, 'é']);
});

test('a type without a body is as none, and a body that is missing is named so', async () => {
  const { authorization } = await freshKeyHolder(api.database);
  const made = await ask(authorization, endpoint('x'));
  const path = `/api/external/webhook-endpoints/${made.answer.json().id}`;
  for (const type of [
    'application/json',
    'application/json; charset=latin1',
    'application/x-www-form-urlencoded',
    'text/xml',
  ]) {
    const headers = { 'content-type': type };
    for (const operation of ['pause', 'enable', 'rotate-secret']) {
      const { status } = await ask(authorization, { url: `${path}/${operation}`, headers });
      expect([type, operation, status]).toEqual([type, operation, 200]);
    }
    const chunked = { ...headers, 'content-type': 'application/json', 'transfer-encoding': 'chunked' };
    expect((await ask(authorization, { url: `${path}/pause`, headers: chunked, payload: '' })).status).toBe(
      200,
    );
  }
  for (const url of ['/api/external/messages', '/api/external/webhook-endpoints']) {
    const { status, error } = await ask(authorization, { url });
    expect([url, status, error.message]).toEqual([url, 400, expect.stringContaining('missing')]);
  }
  expect((await ask(authorization, { url: '/api/external/conversations/search' })).status).toBe(200);
  expect((await ask(authorization, { method: 'DELETE', url: path })).status).toBe(200);
});

test('what upstream sends is kept whatever its bytes are', async () => {
  const body = LATIN1('{"object":"whatsapp_business_account","entry":[{"id":"1","changes":[],"x":"é"}]}');
  const headers = { ...signed(body), 'content-type': 'application/json; charset=latin1' };
  const answer = await api.app.inject({ method: 'POST', url: '/upstream/webhook', headers, payload: body });
  expect(answer.statusCode).toBe(200);
});
