import { beforeEach, describe, expect, test } from 'vitest';
import { type Asked, askFacade } from './ask-facade.ts';
import { apiOnRecordingUpstream, TOKEN, type UpstreamAccount } from './recording-upstream.ts';

const { api, upstream } = apiOnRecordingUpstream();
let own: UpstreamAccount;
let foreign: UpstreamAccount;

beforeEach(async () => {
  [own, foreign] = [await upstream.newAccount(api.database), await upstream.newAccount(api.database)];
  upstream.calls.length = 0;
  upstream.reply(() => ({ json: { success: true } }));
});

/** A path with the ids of the accounts in place of their names. */
function withIds(path: string): string {
  const ids: Record<string, string> = {
    WABA: own.wabaId,
    NUMBER: own.number,
    TEMPLATE: own.template,
    FLOW: own.flow,
    FOREIGN_WABA: foreign.wabaId,
    FOREIGN_NUMBER: foreign.number,
  };
  return path.replace(/[A-Z_]{4,}/g, (name) => ids[name] ?? name);
}

const ask = (path: string, asked: Asked = {}) => askFacade(api, path, { bearer: own.key, ...asked });

const PASSED: [string, string, unknown?][] = [
  ['GET', '/WABA?fields=id,name'],
  ['GET', '/WABA/phone_numbers?limit=2'],
  ['GET', '/WABA/message_templates?name=a&fields=name,status'],
  ['GET', '/WABA/message_templates?source=AUTO_GENERATED&fields=name,correct_category'],
  ['POST', '/WABA/message_templates', { name: 'a', language: 'en', category: 'UTILITY', components: [] }],
  ['DELETE', '/WABA/message_templates?name=a'],
  ['GET', '/WABA/flows'],
  ['POST', '/WABA/flows', { name: 'f', categories: ['OTHER'] }],
  ['GET', '/NUMBER?fields=verified_name,quality_rating'],
  ['GET', '/NUMBER/whatsapp_business_profile?fields=about,websites'],
  ['POST', '/NUMBER/whatsapp_business_profile', { messaging_product: 'whatsapp', about: 'open' }],
  ['POST', '/NUMBER/message_qrdls', { prefilled_message: 'Hi', generate_qr_image: 'PNG' }],
  ['DELETE', '/NUMBER/message_qrdls/ABC123'],
  ['DELETE', '/NUMBER/block_users', { messaging_product: 'whatsapp', block_users: [{ user: '1' }] }],
  ['GET', '/TEMPLATE?fields=name,components'],
  ['POST', '/TEMPLATE', { components: [] }],
  ['GET', '/FLOW?fields=id,preview.invalidate(false)'],
  ['POST', '/FLOW/publish'],
  ['DELETE', '/FLOW'],
];

describe('calls about the WABA’s own objects', () => {
  test.each(PASSED)(
    '%s %s is passed on with the token of the WABA, and nothing else',
    async (method, named, body) => {
      const path = withIds(named);
      const { status, json } = await ask(`/v26.0${path}`, { method, body });
      expect([status, json]).toEqual([200, { success: true }]);
      const call = upstream.calls.at(-1);
      expect(decodeURIComponent(call?.url ?? '')).toBe(`/v26.0${path}`);
      expect(call).toMatchObject({ method, authorization: `Bearer ${TOKEN}` });
      expect(call?.body).toBe(body === undefined ? '' : JSON.stringify(body));
    },
  );

  test.each([
    [2_388_330, 'DELETE', '/WABA/message_templates?name=auto_generated_123456'],
    [2_388_318, 'POST', '/TEMPLATE', { components: [] }],
    [
      138_038,
      'POST',
      '/NUMBER/calls',
      { messaging_product: 'whatsapp', action: 'accept', call_id: 'wacid.1' },
    ],
  ])(
    'a refusal with %i comes back as upstream gives it, and the call is not repeated',
    async (code, method, named, body?) => {
      const error = { message: `(#${code}) No`, type: 'OAuthException', code, fbtrace_id: 'A1' };
      upstream.reply(() => ({ status: 400, json: { error } }));
      const path = withIds(named);
      const { status, json } = await ask(`/v26.0${path}`, { method, body });
      expect([status, json]).toEqual([400, { error }]);
      const own = upstream.calls.filter(({ url }) => decodeURIComponent(url) === `/v26.0${path}`);
      expect(own).toHaveLength(1);
    },
  );

  test('whom to block is read as everywhere, where upstream might read another number', async () => {
    const users = ['0033612345678', '+33 6 12 34 56 78', '33612345678\u200b', 'US.1349'];
    const body = { messaging_product: 'whatsapp', block_users: users.map((user) => ({ user })) };
    const { status } = await ask(`/v26.0/${own.number}/block_users`, { method: 'POST', body });
    const passed = JSON.parse(upstream.calls.at(-1)?.body ?? '{}').block_users;
    expect([status, passed.map(({ user }: { user: string }) => user)]).toEqual([
      200,
      ['+33612345678', '+33 6 12 34 56 78', '+33612345678', 'US.1349'],
    ]);
  });

  test('a path without a version is passed on with that of the service; further pages have none', async () => {
    const page = `${upstream.url}/v26.0/${own.number}/block_users?limit=1&after=QVFI`;
    upstream.reply(() => ({ json: { data: [], paging: { next: page } } }));
    const { status, json } = await ask(`/${own.number}/block_users?limit=1`);
    expect([status, upstream.calls.at(-1)?.url]).toEqual([200, `/v26.0/${own.number}/block_users?limit=1`]);
    expect(new URL(json.paging.next).pathname).toBe(`/graph/${own.number}/block_users`);
  });

  test('an upload of a flow’s JSON is written anew', async () => {
    const form = new FormData();
    form.set('asset_type', 'FLOW_JSON');
    form.set('file', new Blob(['{"version":"7.0"}'], { type: 'application/json' }), 'flow.json');
    const encoded = new Response(form);
    const headers = {
      authorization: `Bearer ${own.key}`,
      'content-type': encoded.headers.get('content-type') ?? '',
    };
    const payload = Buffer.from(await encoded.arrayBuffer());
    const url = `/graph/v26.0/${own.flow}/assets`;
    const answer = await api.app.inject({ method: 'POST', url, headers, payload });
    expect([answer.statusCode, answer.json()]).toEqual([200, { success: true }]);
    expect(upstream.calls.at(-1)?.body).toContain('{"version":"7.0"}');
    form.set('access_token', 'x');
    const wrong = new Response(form);
    const type = { 'content-type': wrong.headers.get('content-type') ?? '' };
    const refused = await api.app.inject({
      method: 'POST',
      url,
      headers: { ...headers, ...type },
      payload: Buffer.from(await wrong.arrayBuffer()),
    });
    expect([refused.statusCode, refused.json().error.code]).toEqual([400, 100]);
  });

  test('addresses of further pages lead to the facade and hold no token', async () => {
    const page = `${upstream.url}/v26.0/${own.wabaId}/message_templates?access_token=${encodeURIComponent(TOKEN)}&limit=1&after=QVFI`;
    upstream.reply(() => ({
      json: {
        data: [{ id: 12345, big: 1 }],
        paging: { cursors: { after: 'QVFI' }, next: page, previous: page },
      },
    }));
    const { json } = await ask(`/v26.0/${own.wabaId}/message_templates?limit=1`);
    const next = `https://gateway.example/graph/v26.0/${own.wabaId}/message_templates?limit=1&after=QVFI`;
    expect(json.paging).toMatchObject({ next: expect.stringMatching(/^https?:\/\/[^/]+\/graph\/v26\.0\//) });
    expect(new URL(json.paging.next).search).toBe(new URL(next).search);
    expect(json.paging.previous).toBe(json.paging.next);
  });

  test('an answer that holds the token anywhere is not given', async () => {
    upstream.reply(() => ({ json: { data: [{ about: `see ${TOKEN}` }] } }));
    const { status, json } = await ask(`/v26.0/${own.number}/whatsapp_business_profile`);
    expect([status, json.error.code]).toEqual([502, 2]);
  });

  test('upstream’s errors are passed on; one about the token is not taken for the client’s', async () => {
    const error = { message: '(#100) No', type: 'OAuthException', code: 100, fbtrace_id: 'A' };
    upstream.reply(() => ({ status: 400, json: { error } }));
    expect(await ask(`/v26.0/${own.wabaId}/flows`)).toMatchObject({ status: 400, json: { error } });
    upstream.reply(() => ({ status: 401, json: { error: { ...error, code: 190 } } }));
    const { status, json } = await ask(`/v26.0/${own.wabaId}/flows`);
    expect([status, json.error.code]).toEqual([500, 131000]);
  });

  test.each([
    [404, { message: 'Route GET:/v26.0/1 not found', error: 'Not Found', statusCode: 404 }, 100],
    [400, { error: 'no' }, 100],
    [400, { error: { message: 'no code' } }, 100],
    [400, `<html>${TOKEN}`, 100],
    [503, '<html>', 2],
    [500, [], 2],
    [302, {}, 2],
  ])(
    'what upstream answers with HTTP %i in another form becomes an error in its form',
    async (status, json, code) => {
      upstream.reply(() => ({ status, json }));
      const answer = await ask(`/v26.0/${own.number}/block_users`);
      expect(answer.status).toBe(status === 302 ? 502 : status);
      expect(answer.json).toEqual({
        error: {
          message: expect.stringContaining(`(#${code}) `),
          type: 'OAuthException',
          code,
          error_data: { messaging_product: 'whatsapp', details: expect.stringContaining(`HTTP ${status}`) },
          ...(status === 503 && { is_transient: true }),
          fbtrace_id: expect.any(String),
        },
      });
    },
  );

  test('an error about the token in another form is not taken for the client’s', async () => {
    upstream.reply(() => ({ status: 401, json: 'who are you?' }));
    const { status, json } = await ask(`/v26.0/${own.wabaId}/flows`);
    expect([status, json.error.code]).toEqual([500, 131000]);
  });

  test('after upstream has said that there were too many calls, none is made for a minute', async () => {
    upstream.reply(() => ({ status: 400, json: { error: { message: 'x', code: 80008 } } }));
    await ask(`/v26.0/${own.wabaId}/phone_numbers`);
    const before = upstream.calls.length;
    const { status, json } = await ask(`/v26.0/${own.wabaId}/phone_numbers`);
    expect([status, json.error.code, json.error.is_transient]).toEqual([429, 80008, true]);
    expect(upstream.calls).toHaveLength(before);
  });
});

test('of the apps that a WABA sends to, only ids and names are told', async () => {
  const app = { id: '7001', name: 'gateway', link: 'https://operator.example' };
  const more = { override_callback_uri: 'https://other.example/hook?secret' };
  upstream.reply(() => ({ json: { data: [{ whatsapp_business_api_data: app, ...more }, {}], paging: {} } }));
  expect((await ask(`/v26.0/${own.wabaId}/subscribed_apps`)).json).toEqual({
    data: [
      { whatsapp_business_api_data: { id: '7001', name: 'gateway' } },
      { whatsapp_business_api_data: {} },
    ],
  });
  const error = { message: '(#100) No', type: 'OAuthException', code: 100, fbtrace_id: 'A' };
  upstream.reply(() => ({ status: 400, json: { error } }));
  expect((await ask(`/v26.0/${own.wabaId}/subscribed_apps`)).json).toEqual({ error });
});

const PRICING =
  'pricing_analytics.start(1790000000).end(1790086400).granularity(DAILY).metric_types(["COST","VOLUME"]).dimensions(["PHONE"])';

test.each([
  ['GET', '/NUMBER/call_permissions?user_wa_id=12025550143'],
  ['GET', '/NUMBER/settings'],
  ['POST', '/NUMBER/settings', { calling: { status: 'ENABLED' } }],
  ['POST', '/NUMBER/calls', { messaging_product: 'whatsapp', action: 'terminate', call_id: 'wacid.1' }],
  ['GET', '/NUMBER/groups?limit=10'],
  ['POST', '/NUMBER/groups', { messaging_product: 'whatsapp', subject: 'Trip' }],
  ['GET', '/NUMBER/username'],
  ['POST', '/NUMBER/username', { username: 'fixture.store' }],
  ['DELETE', '/NUMBER/username'],
  ['GET', '/NUMBER/username_suggestions'],
  ['GET', '/NUMBER/routing_roles'],
  ['GET', `/WABA?${new URLSearchParams({ fields: PRICING })}`],
  ['GET', '/WABA/pricing_analytics?start=1&end=2&granularity=DAILY'],
  [
    'GET',
    '/WABA/template_analytics?start=1&end=2&granularity=DAILY&template_ids=1&metric_types=SENT&product_type=CLOUD_API&use_waba_timezone=true',
  ],
  ['GET', '/NUMBER/call_permissions?recipient=US.13491208655302741918'],
  ['GET', '/WABA/template_group_analytics?start=1&end=2&template_group_ids=1'],
] as const)('%s %s, of what changed in 2026, is passed on as it is', async (method, path, body?: object) => {
  const { status } = await ask(`/v26.0${withIds(path)}`, { method, body });
  expect([status, upstream.calls.map((call) => [call.method, call.url, call.body])]).toEqual([
    200,
    [[method, `/v26.0${withIds(path)}`, body === undefined ? '' : JSON.stringify(body)]],
  ]);
});

test('the password of a SIP server is never asked for', async () => {
  const { status } = await ask(`/v26.0/${own.number}/settings?include_sip_credentials=true`);
  expect([status, upstream.calls]).toEqual([400, []]);
});

const REFUSED: [string, string, unknown?][] = [
  ['GET', '/FOREIGN_WABA'],
  ['GET', '/FOREIGN_WABA/message_templates'],
  ['POST', '/FOREIGN_NUMBER/messages', { messaging_product: 'whatsapp', to: '1', text: { body: 'x' } }],
  ['GET', '/FOREIGN_NUMBER/whatsapp_business_profile'],
  ['GET', '/55001'],
  ['POST', '/55001', { components: [] }],
  ['DELETE', '/55001'],
  ['POST', '/WABA/subscribed_apps', { override_callback_uri: 'https://x.example' }],
  ['DELETE', '/WABA/subscribed_apps'],
  ['GET', '/WABA/assigned_users'],
  ['GET', '/WABA/client_whatsapp_business_accounts'],
  ['POST', '/NUMBER', { webhook_configuration: { override_callback_uri: 'https://x.example' } }],
  ['POST', '/NUMBER/register', { pin: '000000' }],
  ['POST', '/NUMBER/deregister'],
  ['GET', '/NUMBER/message_history'],
  ['GET', '/me'],
  ['GET', '/me/accounts'],
  ['GET', '/debug_token?input_token=x'],
  ['GET', '/oauth/access_token'],
  ['GET', '/NUMBER/message_qrdls/..%2f..%2fFOREIGN_WABA'],
  ['GET', '/WABA%2fflows'],
  ['GET', '/WABA/flows/a/b'],
  ['PUT', '/WABA'],
];

describe('what is not passed on', () => {
  test.each(REFUSED)(
    '%s %s is refused in one form, and upstream never hears of it',
    async (method, path, body) => {
      const { status, json } = await ask(`/v26.0${withIds(path)}`, { method, body });
      expect([status, json.error.code, json.error.type]).toEqual([403, 10, 'OAuthException']);
      expect(upstream.calls.filter(({ url }) => !url.includes(`/${own.wabaId}/`))).toEqual([]);
    },
  );

  test.each([
    ['GET', '', 403, 10],
    ['GET', '/', 403, 10],
    ['POST', '?batch=[]', 403, 10],
    ['GET', '/v26.0/%', 400, 100],
    ['GET', '/v26.0/%zz/messages', 400, 100],
    ['OPTIONS', '/v26.0/NUMBER', 400, 100],
  ])('what no route takes has that form too: %s %s', async (method, path, status, code) => {
    const answer = await ask(withIds(path), { method });
    expect([answer.status, answer.json.error.code, answer.json.error.type]).toEqual([
      status,
      code,
      'OAuthException',
    ]);
    expect(upstream.calls).toEqual([]);
  });

  test('the error says whether the object is missing or the call is not passed on', async () => {
    const detailsOf = async (path: string, method = 'GET') =>
      (await ask(`/v26.0${withIds(path)}`, { method })).json.error.error_data.details;
    for (const [path, method] of [
      ['/NUMBER/register', 'POST'],
      ['/WABA/assigned_users'],
      ['/FOREIGN_WABA/assigned_users'],
      ['/WABA/flows/a/b'],
    ] as const) {
      expect(await detailsOf(path, method), path).toContain('does not pass this call on');
    }
    for (const path of ['/FOREIGN_NUMBER/block_users', '/55001', '/FOREIGN_WABA/message_templates']) {
      expect(await detailsOf(path), path).toContain('has no object with this id');
    }
  });

  test('a foreign object and one that does not exist are not told apart', async () => {
    const answers = [await ask(`/v26.0/${foreign.number}`), await ask('/v26.0/800000000000999')];
    const [theirs, missing] = answers.map(({ status, json }) => ({ status, ...json.error, fbtrace_id: '' }));
    expect(theirs).toEqual(missing);
  });

  test.each([
    '/WABA?fields=owner_business{client_whatsapp_business_accounts}',
    '/WABA?fields=phone_numbers.limit(1){id}',
    '/WABA?fields=pricing_analytics.start(1){id}',
    '/WABA?fields=pricing_analytics.fields(owner_business)',
    '/WABA?fields=pricing_analytics.phone_numbers([{id}])',
    '/WABA/message_templates?method=delete',
    '/WABA/message_templates?ids=FOREIGN_WABA',
    '/WABA/message_templates?limit=1&limit=2',
  ])('the query of %s is refused', async (path) => {
    const { status, json } = await ask(`/v26.0${withIds(path)}`);
    expect([status, json.error.code]).toEqual([400, 100]);
    expect(upstream.calls).toEqual([]);
  });

  test('fields that lead to other objects, or say where webhooks go, are left out', async () => {
    await ask(`/v26.0/${own.wabaId}?fields=id,owner_business,name,subscribed_apps`);
    await ask(`/v26.0/${own.number}?fields=webhook_configuration`);
    const asked = upstream.calls.map(({ url }) => new URL(url, upstream.url).searchParams.get('fields'));
    expect(asked).toEqual(['id,name', 'id']);
  });

  test.each([
    { method: 'DELETE' },
    { access_token: 'x' },
    { fields: 'owner_business' },
    { webhook_configuration: {} },
    { clone_flow_id: '55001' },
  ])('a body with %j is refused', async (extra) => {
    const path = `/v26.0/${own.wabaId}/flows`;
    const { status, json } = await ask(path, { method: 'POST', body: { name: 'f', ...extra } });
    expect([status, json.error.code]).toEqual([400, 100]);
    expect(upstream.calls.filter(({ method }) => method !== 'GET')).toEqual([]);
  });

  test('a slash at the end of a path changes nothing', async () => {
    expect((await ask(`/v26.0/${own.wabaId}/message_templates/?limit=1`)).status).toBe(200);
    expect(upstream.calls.at(-1)?.url).toBe(`/v26.0/${own.wabaId}/message_templates?limit=1`);
  });
});
