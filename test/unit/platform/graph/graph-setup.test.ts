import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { openGraphConnection } from '../../../../src/platform/graph/graph-connection.ts';
import { GraphError } from '../../../../src/platform/graph/graph-error.ts';
import {
  dialogUrl,
  exchangeCode,
  isRefusal,
  readNumberSetup,
  readTokenRights,
  registerNumber,
  subscribeApp,
  syncBusinessApp,
} from '../../../../src/platform/graph/graph-setup.ts';

const APP = { appId: '7001', configId: '7002', appSecret: 'app-secret' };

type Seen = {
  method: string;
  path: string;
  query: Record<string, string>;
  token: string | undefined;
  body: unknown;
};

/** An upstream that answers each call with the next of these. */
async function upstreamWith(...answers: { status?: number; body: unknown }[]) {
  const seen: Seen[] = [];
  const server = createServer(async (request: IncomingMessage, response) => {
    const url = new URL(request.url ?? '', 'http://upstream');
    const given = await text(request);
    seen.push({
      method: request.method ?? '',
      path: url.pathname,
      query: Object.fromEntries(url.searchParams),
      token: request.headers.authorization,
      body: given === '' ? null : JSON.parse(given),
    });
    const { status = 200, body } = answers.shift() ?? { body: {} };
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const connection = openGraphConnection({ graphUrl: `http://127.0.0.1:${port}`, graphVersion: 'v26.0' });
  onTestFinished(async () => {
    await connection.agent.destroy();
    server.close();
  });
  return { connection, seen };
}

test('the dialog is at upstream’s site, and says what is asked for', () => {
  const upstream = { graphUrl: 'https://graph.facebook.com', graphVersion: 'v26.0' };
  const given = { redirectUri: 'https://gateway.example/setup/callback', state: '1.2.mac' };
  const url = new URL(dialogUrl(upstream, APP, { ...given, isCoexistence: true }));
  expect(`${url.origin}${url.pathname}`).toBe('https://www.facebook.com/v26.0/dialog/oauth');
  expect(Object.fromEntries(url.searchParams)).toEqual({
    client_id: '7001',
    config_id: '7002',
    response_type: 'code',
    override_default_response_type: 'true',
    redirect_uri: 'https://gateway.example/setup/callback',
    state: '1.2.mac',
    extras: '{"version":"v4","featureType":"whatsapp_business_app_onboarding"}',
  });
  const sandbox = { graphUrl: 'http://127.0.0.1:9090', graphVersion: 'v26.0' };
  const plain = new URL(dialogUrl(sandbox, APP, { ...given, isCoexistence: false }));
  expect([plain.host, plain.searchParams.get('extras')]).toEqual(['127.0.0.1:9090', '{"version":"v4"}']);
});

test('a code is exchanged with the secret of the app and without a token', async () => {
  const { connection, seen } = await upstreamWith({ body: { access_token: 'EAAG', token_type: 'bearer' } });
  const call = { code: 'AQB', redirectUri: 'https://gateway.example/setup/callback', timeoutMs: 5_000 };
  expect(await exchangeCode(connection, APP, call)).toBe('EAAG');
  expect(seen).toEqual([
    {
      method: 'GET',
      path: '/v26.0/oauth/access_token',
      query: { client_id: '7001', client_secret: 'app-secret', redirect_uri: call.redirectUri, code: 'AQB' },
      token: undefined,
      body: null,
    },
  ]);
});

test('an answer without a token is no token, and a refusal holds neither secret nor code', async () => {
  const expired = { message: 'This authorization code has expired.', code: 100, error_subcode: 36_007 };
  const { connection } = await upstreamWith({ body: {} }, { status: 400, body: { error: expired } });
  const call = { code: 'AQB-code', redirectUri: 'https://gateway.example/setup/callback', timeoutMs: 5_000 };
  await expect(exchangeCode(connection, APP, call)).rejects.toBeInstanceOf(GraphError);
  const refusal: unknown = await exchangeCode(connection, APP, call).catch((error: unknown) => error);
  if (!(refusal instanceof GraphError)) throw new Error('it was not refused');
  expect([isRefusal('code', refusal), isRefusal('pin', refusal)]).toEqual([true, false]);
  expect(JSON.stringify([refusal.message, refusal.upstream, refusal.stack])).not.toMatch(
    /AQB-code|app-secret/,
  );
});

test('the rights of a token are read with the app’s own token; what is missing is nothing', async () => {
  const granular = [
    { scope: 'whatsapp_business_messaging', target_ids: ['1'] },
    { scope: 'whatsapp_business_management', target_ids: ['900', '900', 'x', 901] },
  ];
  const data = { app_id: '7001', is_valid: true, scopes: ['public_profile'], granular_scopes: granular };
  const { connection, seen } = await upstreamWith(
    { body: { data } },
    { body: { data: { ...data, app_id: '7009' } } },
    { body: { data: { app_id: '7001', is_valid: false } } },
    { body: { data: { ...data, granular_scopes: [{ scope: 'whatsapp_business_management' }] } } },
  );
  expect(await readTokenRights(connection, APP, 'EAAG')).toEqual({
    isOurs: true,
    scopes: ['public_profile', 'whatsapp_business_messaging', 'whatsapp_business_management'],
    wabaIds: ['900', '901'],
  });
  expect(seen[0]).toMatchObject({ query: { input_token: 'EAAG' }, token: 'Bearer 7001|app-secret' });
  expect((await readTokenRights(connection, APP, 'EAAG')).isOurs).toBe(false);
  expect(await readTokenRights(connection, APP, 'EAAG')).toEqual({ isOurs: false, scopes: [], wabaIds: [] });
  expect((await readTokenRights(connection, APP, 'EAAG')).wabaIds).toEqual([]);
});

test('what is posted is what upstream documents', async () => {
  const success = { body: { success: true } };
  const { connection, seen } = await upstreamWith(success, success, success, { body: { request_id: 'r1' } });
  await subscribeApp(connection, '900', 'EAAG', null);
  const callback = { callbackUrl: 'https://gateway.example/upstream/webhook', verifyToken: 'verify-me' };
  await subscribeApp(connection, '900', 'EAAG', callback);
  await registerNumber(connection, '800', 'EAAG', '004242');
  await syncBusinessApp(connection, '800', 'EAAG', 'history');
  expect(seen.map(({ method, path, body }) => [method, path, body])).toEqual([
    ['POST', '/v26.0/900/subscribed_apps', {}],
    [
      'POST',
      '/v26.0/900/subscribed_apps',
      { override_callback_uri: callback.callbackUrl, verify_token: 'verify-me' },
    ],
    ['POST', '/v26.0/800/register', { messaging_product: 'whatsapp', pin: '004242' }],
    ['POST', '/v26.0/800/smb_app_data', { messaging_product: 'whatsapp', sync_type: 'history' }],
  ]);
});

test('an answer that does not say success is none', async () => {
  const { connection } = await upstreamWith({ body: { success: false } }, { body: {} });
  await expect(subscribeApp(connection, '900', 'EAAG', null)).rejects.toMatchObject({ transient: true });
  await expect(registerNumber(connection, '800', 'EAAG', '004242')).rejects.toMatchObject({
    transient: true,
  });
});

test('a number is registered only at the Cloud API, and connected', async () => {
  const numbers = [
    { status: 'CONNECTED', platform_type: 'CLOUD_API' },
    { status: 'CONNECTED', platform_type: 'ON_PREMISE' },
    { status: 'PENDING', platform_type: 'CLOUD_API' },
    { is_on_biz_app: true, name_status: 'PENDING_REVIEW' },
    {},
  ];
  const { connection } = await upstreamWith(...numbers.map((body) => ({ body })));
  const found = [];
  for (const _ of numbers) {
    const { isRegistered, isInApp, isInReview } = await readNumberSetup(connection, '800', 'EAAG');
    found.push([isRegistered, isInApp, isInReview]);
  }
  expect(found).toEqual([
    [true, false, false],
    [false, false, false],
    [false, false, false],
    [false, true, true],
    [false, false, false],
  ]);
});
