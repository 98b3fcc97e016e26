import { createHmac } from 'node:crypto';
import { expect, test } from 'vitest';
import { ENDPOINT_APP_SECRET } from '../../../src/engine/endpoint/endpoint-secrets.ts';
import { addEndpoint, endpointStatus, updateEndpoint } from '../../../src/features/endpoints/endpoints.ts';
import { makeAddressGuard } from '../../../src/platform/http/outbound-url.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { startAdmin } from '../../support/admin-cli.ts';
import { takeIn } from '../../support/take-in.ts';
import { testSecretBox } from '../../support/test-accounts.ts';
import { fixtureBody } from '../../support/upstream-fixtures.ts';
import { startTestApi, WABA } from '../api/api-harness.ts';
import { externalClient } from '../api/external-client.ts';
import { addUser, tenantOf } from '../portal/portal-browser.ts';
import { startReceiving, verifying } from './meta-receiver.ts';

const ENDPOINTS = '/api/external/webhook-endpoints';
const APP_SECRET = 'any text: grüße 👋';

test('messages, statuses and payments arrive as upstream sent them, signed by the app secret, the same bytes each time', async () => {
  const { database, tools, receiver, attempt } = await startReceiving();
  const { id, appSecret } = await addEndpoint(tools, WABA, {
    url: receiver.url,
    format: 'meta',
    appSecret: APP_SECRET,
  });
  expect(appSecret).toBeNull();
  const payment = fixtureBody('pay_captured_upi')
    .toString()
    .replace('900000000000202', WABA)
    .replace('800000000000221', '800000000000111');
  const names = ['in_text', 'in_order', 'in_image_caption_url', 'st_sent_v24'];
  await takeIn(database, ...names.map(fixtureBody), Buffer.from(payment));
  const first = await attempt(id);
  expect(first.map(({ headers }) => headers['x-service-event-type']).sort()).toEqual([
    ...['message', 'message', 'message', 'payment', 'status'],
  ]);
  const changes = first.map(({ body }) => JSON.parse(body)).flatMap(({ entry }) => entry[0].changes);
  const sent = JSON.parse(fixtureBody('in_text').toString()).entry[0].changes[0];
  expect(changes).toContainEqual(sent);
  for (const { headers, body } of first) {
    const expected = createHmac('sha256', APP_SECRET).update(body).digest('hex');
    expect(headers['x-hub-signature-256']).toBe(`sha256=${expected}`);
    expect(headers['webhook-id']).toBe(headers['idempotency-key']);
  }
  const again = await attempt(id, 1);
  expect(again.map(({ body }) => body)).toEqual(first.map(({ body }) => body));
});

test('the app secret is made where none is given, kept over changes, replaced on request, and never shown again', async () => {
  const { database, tools, receiver } = await startReceiving();
  const { id, appSecret } = await addEndpoint(tools, WABA, { url: receiver.url });
  expect(appSecret).toBeNull();
  const made = await updateEndpoint(tools, WABA, id, { format: 'meta' });
  expect(made.appSecret).toMatch(/^[0-9a-f]{32}$/);
  const stored = async () => {
    const rows = await query<{ sealed: string; text: string }>(
      database,
      'select app_secret_sealed as sealed, webhook_endpoints::text as text from webhook_endpoints',
    );
    expect(rows[0]?.text).not.toContain(made.appSecret);
    return testSecretBox.open(rows[0]?.sealed ?? '', ENDPOINT_APP_SECRET.place(id));
  };
  expect(await stored()).toBe(made.appSecret);
  expect((await updateEndpoint(tools, WABA, id, { description: 'chat' })).appSecret).toBeNull();
  expect(await stored()).toBe(made.appSecret);
  await updateEndpoint(tools, WABA, id, { appSecret: APP_SECRET });
  expect(await stored()).toBe(APP_SECRET);
  expect(JSON.stringify(await endpointStatus(tools, WABA, id))).not.toMatch(/appSecret|any text/);
});

test('with a verify token, the URL must return the challenge, when it is added and when it is changed', async () => {
  const { tools, receiver } = await startReceiving(verifying('right'));
  const wanted = { url: `${receiver.url}/hook?a=1`, format: 'meta' };
  const wrong = addEndpoint(tools, WABA, { ...wanted, verifyToken: 'wrong' });
  await expect(wrong).rejects.toMatchObject({ code: 'url_not_verified', param: 'verifyToken' });
  const { id } = await addEndpoint(tools, WABA, { ...wanted, verifyToken: 'right' });
  expect(receiver.received.at(-1)?.path).toMatch(
    /^\/hook\?a=1&hub\.mode=subscribe&hub\.challenge=\d+&hub\.verify_token=right$/,
  );
  receiver.behave((_webhook, response) => {
    response.writeHead(200).end('hello');
    return 200;
  });
  const change = updateEndpoint(tools, WABA, id, { url: `${receiver.url}/b`, verifyToken: 'right' });
  await expect(change).rejects.toMatchObject({ code: 'url_not_verified' });
  expect((await endpointStatus(tools, WABA, id)).url).toBe(wanted.url);
});

test('the URL is verified at allowed addresses only', async () => {
  const { tools, receiver } = await startReceiving(verifying('right'));
  const guard = makeAddressGuard({ allowCidrs: [] });
  const strict = { ...tools, urlRules: { ...tools.urlRules, guard } };
  const given = { url: receiver.url, format: 'meta', verifyToken: 'right' };
  await expect(addEndpoint(strict, WABA, given)).rejects.toMatchObject({ code: 'address_not_allowed' });
  expect(receiver.received).toEqual([]);
});

test('REST: what is for the format meta is refused without it; a made secret stands in one answer', async () => {
  const call = await externalClient(await startTestApi());
  const url = 'https://93.184.216.34/a';
  for (const wrong of [
    { appSecret: 'a' },
    { verifyToken: 'a' },
    { format: 'meta', appSecret: '' },
    { format: 'meta', appSecret: '15 characters !' },
    { format: 'meta', verifyToken: '' },
  ]) {
    const answer = await call('POST', ENDPOINTS, { url, ...wrong });
    expect([answer.statusCode, answer.json().error.code]).toEqual([400, 'invalid_parameter']);
  }
  const created = (await call('POST', ENDPOINTS, { url, format: 'meta' })).json();
  expect(created).toMatchObject({ format: 'meta', appSecret: expect.stringMatching(/^[0-9a-f]{32}$/) });
  const shown = (await call('GET', `${ENDPOINTS}/${created.id}`)).body;
  expect(shown).not.toContain(created.appSecret);
  const changed = (await call('PATCH', `${ENDPOINTS}/${created.id}`, { appSecret: APP_SECRET })).json();
  expect(changed).toMatchObject({ format: 'meta', appSecret: null });
});

test('CLI and portal add such an endpoint and show its app secret once', async () => {
  const { json } = await startAdmin();
  const added = await json(
    'endpoint',
    'add',
    '--waba',
    WABA,
    '--url',
    'http://127.0.0.1:9/hook',
    '--format',
    'meta',
  );
  expect(added).toMatchObject({ format: 'meta', appSecret: expect.stringMatching(/^[0-9a-f]{32}$/) });
  expect(JSON.stringify(await json('endpoint', 'show', added.id))).not.toContain(added.appSecret);

  const api = await startTestApi();
  const tenantId = await tenantOf(api.database, WABA);
  const admin = await addUser(api, { email: 'admin@store.example', role: 'admin', tenantId });
  await admin.get(`/portal/w/${WABA}/endpoints/new`);
  const fields = { url: 'https://93.184.216.34/a', format: 'meta' };
  const page = await admin.post(`/portal/w/${WABA}/endpoints`, fields);
  const made = /App secret<\/h2>\s*.*?([0-9a-f]{32})/s.exec(page.body)?.[1];
  expect(made).toBeDefined();
  const [endpoint] = await query<{ id: string }>(api.database, 'select id from webhook_endpoints');
  const path = `/portal/w/${WABA}/endpoints/${endpoint?.id}`;
  const own = await admin.get(`${path}/settings`);
  expect(own.body).toContain('WhatsApp Cloud API');
  for (const page of [own, await admin.get(path), await admin.get(`${path}/security`)]) {
    expect(page.body).not.toContain(made);
  }
  const saved = await admin.post(`${path}/edit`, { ...fields, appSecret: APP_SECRET });
  expect(saved.statusCode).toBe(303);
});
