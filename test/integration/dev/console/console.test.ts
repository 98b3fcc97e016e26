import { Webhook } from 'standardwebhooks';
import { describe, expect, onTestFinished, test } from 'vitest';
import { startReceiver } from '../../../../dev/sandbox/receiver/receiver.ts';
import { loadConfig } from '../../../../src/platform/config/config.ts';
import { KNOWN_FIELDS } from '../../../../src/platform/upstream-fields.ts';
import { testSettings } from '../../../support/test-settings.ts';
import { call, postJson, startSandbox } from '../../../unit/dev/sandbox/sandbox-harness.ts';
import { NUMBER, OTHER_NUMBER, OTHER_WABA, PUBLIC_URL, startTestApi, WABA } from '../../api/api-harness.ts';
import { markupProblems } from '../../portal/markup-problems.ts';
import { addUser, type PortalBrowser, tenantOf } from '../../portal/portal-browser.ts';

const ASHA = '12025550143';
const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const HOSTILE = `"'><img src=x onerror=alert(1)><script>alert(2)</script>`;
const JSON_ANSWER = { accept: 'application/json' };

/** The API with a sandbox of its own; the platform's webhooks end at a server that takes everything. */
async function startConsole(overrides: Record<string, string> = {}) {
  const [sandbox, receiver] = await Promise.all([
    startSandbox(),
    startReceiver({ host: '127.0.0.1', port: 0, secrets: [SECRET], writeLine: () => undefined }),
  ]);
  onTestFinished(() => receiver.close());
  const api = await startTestApi(async (databaseUrl) => {
    const settings = testSettings(databaseUrl, {
      HELIOGRAPH_PUBLIC_URL: PUBLIC_URL,
      HELIOGRAPH_SANDBOX_CONTROL_URL: sandbox.url,
      HELIOGRAPH_SANDBOX_RECEIVER_URL: receiver.url,
      ...overrides,
    });
    return { config: loadConfig(settings) };
  });
  const user = async (role: string, wabaId = WABA): Promise<PortalBrowser> => {
    const tenantId = role === 'operator' ? null : await tenantOf(api.database, wabaId);
    const browser = await addUser(api, { email: `${role}-${wabaId}@example.com`, role, tenantId });
    await browser.get('/portal/sandbox');
    return browser;
  };
  const sent = () => sandbox.ingress.webhooks.map(({ bytes }) => JSON.parse(bytes.toString()));
  return { ...api, sandbox, receiverUrl: receiver.url, user, sent };
}

const from = { number: NUMBER, customer: ASHA };

/** What the platform was told of the newest message. */
function messageIn(body: { entry: { changes: { value: { messages?: Record<string, unknown>[] } }[] }[] }) {
  return body.entry[0]?.changes[0]?.value.messages?.[0];
}

async function deliver(receiverUrl: string, wabaId: string, body: string) {
  const sentAt = new Date();
  const headers = {
    'content-type': 'application/json',
    'webhook-id': 'evt_1',
    'webhook-timestamp': String(Math.floor(sentAt.getTime() / 1000)),
    'webhook-signature': new Webhook(SECRET).sign('evt_1', sentAt, body),
  };
  expect((await call(`${receiverUrl}/webhook/${wabaId}`, { method: 'POST', headers, body })).status).toBe(
    200,
  );
}

describe('who may do what', () => {
  test('an operator plays with every number, a tenant with its own only', async () => {
    const { user, sent } = await startConsole();
    const operator = await user('operator');
    const page = await operator.get('/portal/sandbox');
    expect(page.statusCode).toBe(200);
    expect(page.body).toContain(`value="${NUMBER}"`);
    expect(page.body).toContain(`value="${OTHER_NUMBER}"`);
    // The form of the taps has its buttons at messages, of which there are none yet.
    const problems = await markupProblems(page.body);
    expect(problems.filter((problem) => !problem.startsWith('wcag/h32'))).toEqual([]);
    const other = await user('admin', OTHER_WABA);
    expect((await other.get(`/portal/sandbox?number=${NUMBER}`)).body).not.toContain(NUMBER);
    const answer = await other.post('/portal/sandbox/messages', { ...from, kind: 'hello' });
    expect(answer.statusCode).toBe(404);
    const tenant = await other.post('/portal/sandbox/tenant', { ...from, answer: 'error' });
    expect(tenant.statusCode).toBe(404);
    const field = await other.post('/portal/sandbox/fields', { ...from, field: 'account_update' });
    expect(field.statusCode).toBe(404);
    expect(sent()).toEqual([]);
  });

  test('a member looks on: the page has no composer, and every form is refused', async () => {
    const { user, sent } = await startConsole();
    const member = await user('member');
    const page = await member.get('/portal/sandbox');
    expect(page.statusCode).toBe(200);
    expect(page.body).not.toContain('data-console');
    for (const [path, fields] of [
      ['messages', { kind: 'hello' }],
      ['taps', { tap: 'react 1 👍' }],
      ['tenant', { answer: 'error' }],
      ['fields', { field: 'account_update' }],
    ] as const) {
      expect((await member.post(`/portal/sandbox/${path}`, { ...from, ...fields })).statusCode).toBe(403);
    }
    expect(sent()).toEqual([]);
  });

  test('what another tenant received and sent is not found', async () => {
    const { user, sandbox, receiverUrl } = await startConsole();
    const { id } = await (await call(`${sandbox.url}/sandbox/media`, { method: 'POST', body: 'x' })).json();
    await postJson(`${sandbox.url}/sandbox/inbound`, { type: 'image', mediaId: id });
    await deliver(receiverUrl, WABA, '{}');
    const [own, other] = [await user('admin'), await user('admin', OTHER_WABA)];
    for (const path of ['/portal/sandbox/webhooks/1', `/portal/sandbox/media/${id}?number=${NUMBER}`]) {
      expect((await own.get(path)).statusCode).toBe(200);
      expect((await other.get(path)).statusCode).toBe(404);
    }
  });

  test('in production mode there is no console', async () => {
    const { user } = await startConsole({
      HELIOGRAPH_MODE: 'production',
      HELIOGRAPH_UPSTREAM_APP_SECRETS: 'secret-of-the-upstream-app',
      HELIOGRAPH_ENCRYPTION_KEYS: `k:${Buffer.from(Array.from({ length: 32 }, (_, byte) => byte)).toString('base64')}`,
      HELIOGRAPH_WEBHOOK_ALLOW_HTTP: 'false',
      HELIOGRAPH_SANDBOX_CONTROL_URL: '',
      HELIOGRAPH_SANDBOX_RECEIVER_URL: '',
    });
    const operator = await user('operator');
    for (const path of ['', '/live', '/webhooks/1', '/media/1']) {
      expect((await operator.get(`/portal/sandbox${path}`)).statusCode).toBe(404);
    }
    expect((await operator.post('/portal/sandbox/messages', { kind: 'hello' })).statusCode).toBe(404);
  });
});

describe('the phone', () => {
  test('sends each kind of message as the platform would report it, and comes back to the chat', async () => {
    const { user, sent } = await startConsole();
    const admin = await user('admin');
    const kinds = {
      text: 'text',
      hello: 'text',
      'sample sandbox-coffee.jpg': 'image',
      'sample sandbox-sunset.mp4': 'video',
      'sample sandbox-voice.ogg': 'audio',
      'sample sandbox-order-form.pdf': 'document',
      'sample sandbox-sticker.webp': 'sticker',
      location: 'location',
      contacts: 'contacts',
      order: 'order',
    };
    for (const [kind, type] of Object.entries(kinds)) {
      const answer = await admin.post('/portal/sandbox/messages', { ...from, kind, text: 'Hi' }, JSON_ANSWER);
      expect(answer.json()).toEqual({ done: 'sent' });
      expect(messageIn(sent().at(-1))).toMatchObject({ from: ASHA, type });
    }
    const answer = await admin.post('/portal/sandbox/messages', { ...from, kind: 'text', text: 'Bye' });
    expect(answer.statusCode).toBe(303);
    const page = await admin.get(String(answer.headers.location));
    for (const words of ['Bye', 'The message was sent', 'order-form.pdf', 'Farah Fixture', '388.90 INR']) {
      expect(page.body).toContain(words);
    }
    expect(await markupProblems(page.body)).toEqual([]);
  });

  test('reports payments of one reference, so that a refund is one of what was captured', async () => {
    const { user, sent } = await startConsole();
    const admin = await user('admin');
    for (const state of ['pending', 'captured', 'refund']) {
      await admin.post('/portal/sandbox/messages', { ...from, kind: `payment ${state}` }, JSON_ANSWER);
    }
    const payments = sent().map((body) => body.entry[0].changes[0].value.statuses[0].payment);
    expect(new Set(payments.map(({ reference_id }) => reference_id)).size).toBe(1);
    expect(payments[2].refunds).toHaveLength(1);
  });

  test('sends a file of the person’s own, and shows pictures but never pages', async () => {
    const { app, user, sent } = await startConsole();
    const admin = await user('admin');
    const upload = async (name: string, type: string, bytes: string | Uint8Array<ArrayBuffer>) => {
      const form = new FormData();
      for (const [field, value] of Object.entries({ ...from, kind: 'file', _csrf: admin.token() })) {
        form.set(field, value);
      }
      form.set('file', new Blob([bytes], { type }), name);
      const request = new Request('http://x', { method: 'POST', body: form });
      const headers = {
        ...JSON_ANSWER,
        'content-type': request.headers.get('content-type') ?? '',
        origin: PUBLIC_URL,
        host: new URL(PUBLIC_URL).host,
        cookie: [...admin.cookies].map(([cookie, value]) => `${cookie}=${value}`).join('; '),
      };
      const payload = Buffer.from(await request.arrayBuffer());
      return await app.inject({ method: 'POST', url: '/portal/sandbox/messages', headers, payload });
    };
    expect((await upload('a.png', 'image/png', 'PNG')).statusCode).toBe(200);
    const image = messageIn(sent().at(-1))?.image as { id: string };
    const shown = await admin.get(`/portal/sandbox/media/${image.id}?number=${NUMBER}`);
    expect(shown.headers['content-type']).toBe('image/png');
    expect(shown.body).toBe('PNG');
    expect((await upload(HOSTILE, 'text/html', '<script>alert(1)</script>')).statusCode).toBe(200);
    const page = messageIn(sent().at(-1))?.document as { id: string };
    const offered = await admin.get(`/portal/sandbox/media/${page.id}?number=${NUMBER}`);
    expect(offered.headers['content-type']).toBe('application/octet-stream');
    expect(offered.headers['content-disposition']).toBe('attachment');
    expect(offered.headers['content-security-policy']).toContain('sandbox');
    expect((await upload('big.png', 'image/png', new Uint8Array(17 * 1024 * 1024))).statusCode).toBe(413);
  });

  test('says what is wrong with a form, at the page or to the script', async () => {
    const { user, sent } = await startConsole();
    const admin = await user('admin');
    const cases: [string, Record<string, string>][] = [
      ['messages', { kind: 'text', text: '  ' }],
      ['messages', { kind: 'file' }],
      ['messages', { kind: 'sample ../../portal.css' }],
      ['messages', { kind: '__proto__' }],
      ['messages', { kind: 'payment x' }],
      ['messages', { kind: 'text', text: 'x', replyTo: '77' }],
      ['taps', { tap: 'react 1 👍' }],
      ['taps', { tap: 'choose 1 99' }],
      ['taps', { tap: 'x' }],
      ['fields', { field: 'no_such_field' }],
      ['fields', { field: 'toString' }],
      ['fields', { field: 'account_update', value: '{' }],
      ['tenant', { answer: 'constructor' }],
      ['tenant', { answer: 'error', times: 'toString' }],
    ];
    for (const [path, fields] of cases) {
      const page = await admin.post(`/portal/sandbox/${path}`, { ...from, ...fields });
      expect([fields, page.statusCode]).toEqual([fields, 422]);
      expect(page.body).toContain('<div class="notice error" role="alert">');
      const answer = await admin.post(`/portal/sandbox/${path}`, { ...from, ...fields }, JSON_ANSWER);
      expect([fields, answer.statusCode]).toEqual([fields, 422]);
      expect(answer.json().message).toMatch(/\.$/);
    }
    expect((await admin.post('/portal/sandbox/messages', from)).statusCode).toBe(400);
    expect(sent()).toEqual([]);
  });

  test('reports a change in any known field: the sample of the catalogue, or a value that was written', async () => {
    const { user, sent } = await startConsole();
    const admin = await user('admin');
    for (const field of KNOWN_FIELDS) {
      const answer = await admin.post('/portal/sandbox/fields', { ...from, field }, JSON_ANSWER);
      expect([field, answer.statusCode]).toEqual([field, 200]);
      expect(sent().at(-1)).toMatchObject({ entry: [{ id: WABA, changes: [{ field }] }] });
    }
    const own = { field: 'calls', value: '{"calls":[]}' };
    expect((await admin.post('/portal/sandbox/fields', { ...from, ...own })).statusCode).toBe(303);
    expect(sent().at(-1).entry[0].changes).toEqual([{ field: 'calls', value: { calls: [] } }]);
  });

  test('reacts to a message, answers it, and taps its buttons, which are looked up in the chat', async () => {
    const { user, sandbox, sent } = await startConsole();
    const admin = await user('admin');
    const button = (id: string) => ({ type: 'reply', reply: { id, title: `Title ${id}` } });
    const interactive = {
      type: 'button',
      body: { text: 'Which?' },
      action: { buttons: [button('a'), button('b')] },
    };
    const body = { messaging_product: 'whatsapp', to: ASHA, type: 'interactive', interactive };
    const answer = await (await postJson(`${sandbox.url}/v26.0/${NUMBER}/messages`, body)).json();
    const [{ id }] = answer.messages;
    await admin.post('/portal/sandbox/taps', { ...from, tap: 'choose 1 1' }, JSON_ANSWER);
    const replied = sent()
      .map(messageIn)
      .find((message) => message?.type === 'interactive');
    expect(replied).toMatchObject({
      context: { id },
      interactive: { button_reply: { id: 'b', title: 'Title b' } },
    });
    await admin.post('/portal/sandbox/taps', { ...from, tap: 'react 1 👍' }, JSON_ANSWER);
    expect(
      sent()
        .map(messageIn)
        .find((message) => message?.type === 'reaction'),
    ).toMatchObject({
      reaction: { message_id: id, emoji: '👍' },
    });
    await admin.post(
      '/portal/sandbox/messages',
      { ...from, kind: 'text', text: 'That', replyTo: '1' },
      JSON_ANSWER,
    );
    expect(
      sent()
        .map(messageIn)
        .find((message) => message?.type === 'text'),
    ).toMatchObject({ context: { id } });
    const page = await admin.get('/portal/sandbox');
    expect(page.body).toContain('<span class="quote">Which?</span>');
    expect(page.body).toMatch(/class="reactions">.*👍/);
    expect((await admin.get('/portal/sandbox?reply=1')).body).toContain('<q>Which?</q>');
  });

  test('sends 100 messages', async () => {
    const { user, sent } = await startConsole();
    const admin = await user('admin');
    const answer = await admin.post('/portal/sandbox/messages', { ...from, kind: 'burst' }, JSON_ANSWER);
    expect(answer.json()).toEqual({ done: 'burst' });
    expect(new Set(sent().map((body) => messageIn(body)?.id)).size).toBe(100);
  });

  test('tells when the gateway refuses, and when the sandbox is away', async () => {
    const { user, sandbox } = await startConsole();
    const admin = await user('admin');
    sandbox.ingress.statuses.push(401);
    const refused = await admin.post('/portal/sandbox/messages', { ...from, kind: 'hello' }, JSON_ANSWER);
    expect(refused.statusCode).toBe(422);
    expect(refused.json().message).toContain('401');
    await sandbox.close();
    const away = await admin.get('/portal/sandbox');
    expect(away.statusCode).toBe(503);
    expect(away.body).toContain('The sandbox does not answer');
  });
});

describe('the tenant', () => {
  test('answers as told, for one WABA and as often as told', async () => {
    const { user, receiverUrl } = await startConsole();
    const admin = await user('admin');
    const told = async () => (await (await call(`${receiverUrl}/control/behaviour`)).json()).behaviours;
    await admin.post('/portal/sandbox/tenant', { ...from, answer: 'limit', times: '3' }, JSON_ANSWER);
    expect(await told()).toEqual([{ mode: 'status', status: 429, retryAfter: 5, times: 3, name: WABA }]);
    expect((await admin.get('/portal/sandbox')).body).toMatch(/value="limit"[^>]*aria-pressed="true"/);
    await admin.post('/portal/sandbox/tenant', { ...from, answer: 'ok', times: '3' }, JSON_ANSWER);
    expect(await told()).toEqual([{ mode: 'ok', name: WABA }]);
  });

  test('nothing from outside becomes markup, neither in the chat nor among the webhooks', async () => {
    const { user, sandbox, receiverUrl } = await startConsole();
    const admin = await user('admin');
    for (const more of [
      { type: 'text', body: HOSTILE },
      { type: 'document', filename: HOSTILE, caption: HOSTILE },
      { type: 'location', title: HOSTILE, address: HOSTILE },
      { type: 'interactive', title: HOSTILE },
      { type: HOSTILE },
      { type: 'order', items: [{ retailerId: HOSTILE, quantity: 1, itemPrice: 1, currency: '"><' }] },
    ]) {
      const request = { ...more, from: ASHA, name: HOSTILE, phoneNumberId: NUMBER };
      expect((await postJson(`${sandbox.url}/sandbox/inbound`, request)).status).toBe(200);
    }
    await postJson(`${sandbox.url}/sandbox/inbound`, { type: 'text', from: '4915550100', name: HOSTILE });
    const data = { message: { type: 'text', text: { body: HOSTILE } } };
    await deliver(receiverUrl, WABA, JSON.stringify({ eventType: HOSTILE, eventId: HOSTILE, data }));
    for (const path of ['/portal/sandbox', '/portal/sandbox/webhooks/1']) {
      const { body } = await admin.get(path);
      expect(body).toContain('&lt;script&gt;alert(2)');
      expect(body).not.toContain('<script>alert');
      expect(body).not.toContain('<img src=x');
      expect(await markupProblems(body)).toEqual([]);
    }
  });

  test('the live part answers only with what changed since it was seen', async () => {
    const { user, receiverUrl } = await startConsole();
    const admin = await user('admin');
    type Part = { id: string; hash: string; html: string };
    const parts = async (seen = ''): Promise<Part[]> =>
      (await admin.get(`/portal/sandbox/live?number=${NUMBER}&customer=${ASHA}&seen=${seen}`)).json().parts;
    const first = await parts();
    expect(first.map(({ id }) => id)).toEqual(['thread', 'summary', 'answers', 'received']);
    const seen = first.map(({ hash }) => hash).join('.');
    expect(await parts(seen)).toEqual([]);
    const body = JSON.stringify({
      eventType: 'message',
      eventId: 'wamid.1',
      data: { message: { type: 'sun' } },
    });
    await deliver(receiverUrl, WABA, body);
    const changed = await parts(seen);
    expect(changed.map(({ id }) => id)).toEqual(['summary', 'received']);
    expect(changed[1]?.html).toContain('sun');
  });
});
