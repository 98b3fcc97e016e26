import { Webhook } from 'standardwebhooks';
import { describe, expect, onTestFinished, test } from 'vitest';
import { startReceiver } from '../../../../dev/sandbox/receiver/receiver.ts';
import { call, graph, postJson, startSandbox, until } from './sandbox-harness.ts';

const WABA = '900000000000101';
const NUMBER = '800000000000111';
const ASHA = '12025550143';
const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

async function chatOf(url: string, wabaId = WABA) {
  return (await (await call(`${url}/sandbox/chat?wabaId=${wabaId}`)).json()).data;
}

function send(url: string, message: Record<string, unknown>) {
  const body = { messaging_product: 'whatsapp', to: ASHA, ...message };
  return graph(`${url}/v26.0/${NUMBER}/messages`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
}

describe('GET /sandbox/chat', () => {
  test('shows what a customer wrote, with the answer of the gateway, and what the business marked as read', async () => {
    const { url } = await startSandbox();
    const sent = await (await postJson(`${url}/sandbox/inbound`, { type: 'text', body: 'hello' })).json();
    await send(url, { status: 'read', message_id: sent.id });
    const [entry] = await chatOf(url);
    expect(entry).toMatchObject({
      n: 1,
      side: 'customer',
      id: sent.id,
      phoneNumberId: NUMBER,
      customer: ASHA,
    });
    expect(entry).toMatchObject({ customerName: 'Asha Tester', message: { text: { body: 'hello' } } });
    expect(entry.states.map(({ state }: { state: string }) => state)).toEqual([
      'sending',
      'delivered',
      'read',
    ]);
  });

  test('shows what the business sent with its statuses, in the order of the chat', async () => {
    const { url } = await startSandbox();
    await postJson(`${url}/sandbox/inbound`, { type: 'text' });
    await send(url, { type: 'text', text: { body: 'Yes' } });
    await until(async () => (await chatOf(url))[1].states.length === 4);
    const [, entry] = await chatOf(url);
    expect(entry).toMatchObject({
      n: 2,
      side: 'business',
      customer: ASHA,
      message: { text: { body: 'Yes' } },
    });
    const states = entry.states.map(({ state }: { state: string }) => state);
    expect(states).toEqual(['accepted', 'sent', 'delivered', 'read']);
  });

  test('says when the gateway refused, and when it did not answer', async () => {
    const { url, ingress } = await startSandbox();
    ingress.statuses.push(500);
    await postJson(`${url}/sandbox/inbound`, { type: 'text' });
    const alone = await startSandbox({ ingressUrl: 'http://127.0.0.1:1' });
    await postJson(`${alone.url}/sandbox/inbound`, { type: 'text' });
    for (const one of [url, alone.url]) {
      const [entry] = await chatOf(one);
      expect(entry.states.at(-1).state).toBe('refused');
    }
  });

  test('holds payments, keeps accounts apart, and takes a status that a developer sends', async () => {
    const { url } = await startSandbox();
    const payment = {
      type: 'payment',
      status: 'captured',
      referenceId: 'ord-1',
      phoneNumberId: '800000000000221',
    };
    await postJson(`${url}/sandbox/inbound`, payment);
    const answer = await (await send(url, { type: 'text', text: { body: 'x' } })).json();
    const [{ id }] = answer.messages;
    await postJson(`${url}/sandbox/inbound`, { type: 'status', id, status: 'failed' });
    expect(await chatOf(url, '900000000000202')).toMatchObject([
      { id: 'ord-1', customer: '910000000143', message: { type: 'payment', status: 'captured' } },
    ]);
    const [entry] = await chatOf(url);
    expect(entry.states.map(({ state }: { state: string }) => state)).toContain('failed');
    expect(await chatOf(url, '1')).toEqual([]);
  });

  test('without an account, or with a limit that is none, is refused', async () => {
    const { url } = await startSandbox();
    for (const query of ['', '?wabaId=1&limit=0', '?wabaId=1&limit=x']) {
      expect((await call(`${url}/sandbox/chat${query}`)).status).toBe(400);
    }
  });
});

test('GET /sandbox/customers offers the demo customers, and whoever has a chat', async () => {
  const { url } = await startSandbox();
  await postJson(`${url}/sandbox/inbound`, { type: 'text', from: '4915550100', name: 'Neu' });
  const { data } = await (await call(`${url}/sandbox/customers?wabaId=${WABA}`)).json();
  expect(data[0]).toEqual({ waId: ASHA, name: 'Asha Tester' });
  expect(data).toContainEqual({ waId: '4915550100', name: 'Neu' });
});

test('GET /sandbox/media hands out stored bytes so that no page of theirs runs', async () => {
  const { url } = await startSandbox();
  const headers = { 'content-type': 'text/html' };
  const body = '<script>alert(1)</script>';
  const { id } = await (await call(`${url}/sandbox/media`, { method: 'POST', headers, body })).json();
  const answer = await call(`${url}/sandbox/media/${id}`);
  expect(await answer.text()).toBe(body);
  expect(answer.headers.get('content-security-policy')).toContain('sandbox');
  expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
  expect((await call(`${url}/sandbox/media/690000000000000000`)).status).toBe(404);
});

describe('GET /received/newest', () => {
  async function startTenant() {
    const config = { host: '127.0.0.1', port: 0, secrets: [SECRET], writeLine: () => undefined };
    const server = await startReceiver(config);
    onTestFinished(() => server.close());
    return server.url;
  }

  function deliver(url: string, path: string, data: unknown, secret = SECRET) {
    const body = JSON.stringify({ eventType: 'message', eventId: 'wamid.1', data });
    const sentAt = new Date();
    const headers = {
      'content-type': 'application/json',
      'webhook-id': `evt_${path}`,
      'webhook-timestamp': String(Math.floor(sentAt.getTime() / 1000)),
      'webhook-signature': new Webhook(secret).sign(`evt_${path}`, sentAt, body),
    };
    return call(`${url}/webhook/${path}`, { method: 'POST', headers, body });
  }

  const newest = async (url: string, name: string, more = '') =>
    await (await call(`${url}/received/newest?name=${name}${more}`)).json();

  test('lists those of one name, the newest first, with a summary and how they were answered', async () => {
    const url = await startTenant();
    const data = {
      contacts: [{ profile: { name: 'Asha' } }],
      message: { from: '1', type: 'text', text: { body: 'hi' } },
    };
    await deliver(url, 'a', data);
    await deliver(url, 'b', data);
    await postJson(`${url}/control/behaviour`, { mode: 'status', status: 503, name: 'a' });
    await deliver(url, 'a', data);
    const list = await newest(url, 'a');
    expect(list.data).toMatchObject([
      { n: 3, status: 503, mode: 'status', duplicate: true, eventType: 'message', summary: 'text "hi"' },
      { n: 1, status: 200, mode: 'ok', duplicate: false },
    ]);
    expect(list.data[0]).not.toHaveProperty('body');
    expect(list.counts).toEqual({ received: 2, verified: 2, duplicates: 1, failed: 1 });
    expect((await newest(url, 'a', '&limit=1')).data).toHaveLength(1);
    expect((await call(`${url}/received/newest?name=a&limit=0`)).status).toBe(400);
  });

  test('takes bodies of any form, also with a wrong signature', async () => {
    const url = await startTenant();
    for (const data of [null, 'x', { message: null }, { message: 'plain' }, { message: [1] }]) {
      await deliver(url, 'c', data);
    }
    const other = `whsec_${Buffer.alloc(32, 9).toString('base64')}`;
    await deliver(url, 'c', {}, other);
    const { data, counts } = await newest(url, 'c');
    expect(data).toHaveLength(6);
    expect(counts).toMatchObject({ received: 6, verified: 5, failed: 1 });
    expect(data[0]).toMatchObject({ verified: false, status: 401, mode: null });
  });

  test('one is had whole by its number', async () => {
    const url = await startTenant();
    await deliver(url, 'd', { message: {} });
    const whole = await (await call(`${url}/received/1`)).json();
    expect(JSON.parse(whole.body)).toMatchObject({ eventId: 'wamid.1' });
    expect((await call(`${url}/received/2`)).status).toBe(404);
    expect((await call(`${url}/received/x`)).status).toBe(404);
  });
});
