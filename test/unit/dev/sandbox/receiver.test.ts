import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type ReceiverConfig, startReceiver } from '../../../../dev/sandbox/receiver/receiver.ts';
import { call, type JsonResponse, postJson } from './sandbox-harness.ts';

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const OTHER_SECRET = `whsec_${Buffer.alloc(32, 9).toString('base64')}`;
const BODY = JSON.stringify({
  eventType: 'message',
  eventId: 'wamid.HBgLMTIwMjU1NTAxNDMVAgASGBQzQUZFOERGMUE1QTE5ODA0OTNDQQA=',
  data: {
    contacts: [{ profile: { name: 'Asha Tester' }, wa_id: '12025550143' }],
    message: { from: '12025550143', type: 'text', text: { body: 'Does it come in another size? é' } },
  },
});

async function startTenant(config: Partial<ReceiverConfig> = {}) {
  const lines: string[] = [];
  const writeLine = (line: string) => lines.push(line);
  const server = await startReceiver({ host: '127.0.0.1', port: 0, secrets: [SECRET], writeLine, ...config });
  onTestFinished(() => server.close());
  return { url: server.url, lines };
}

type Delivery = {
  id?: string;
  secret?: string;
  body?: string;
  sentAt?: Date;
  path?: string;
  attempt?: number;
};

/** Posts as the gateway does, signed by the reference library of Standard Webhooks. */
function deliver(url: string, delivery: Delivery = {}): Promise<JsonResponse> {
  const {
    id = 'evt_1',
    secret = SECRET,
    body = BODY,
    sentAt = new Date(),
    path = '/webhook',
    attempt = 1,
  } = delivery;
  const headers = {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(sentAt.getTime() / 1000)),
    'webhook-signature': new Webhook(secret).sign(id, sentAt, body),
    'x-service-attempt': String(attempt),
  };
  return call(`${url}${path}`, { method: 'POST', headers, body });
}

async function received(url: string, since = 0) {
  return (await (await call(`${url}/received?since=${since}`)).json()).data;
}

describe('signature', () => {
  test('made by the reference library is accepted, and the exact body is kept', async () => {
    const { url } = await startTenant();
    expect((await deliver(url)).status).toBe(200);
    const [webhook] = await received(url);
    expect(webhook).toMatchObject({
      n: 1,
      webhookId: 'evt_1',
      verified: true,
      duplicate: false,
      status: 200,
    });
    expect(webhook.body).toBe(BODY);
    expect(Buffer.from(webhook.bodyBase64, 'base64').toString()).toBe(BODY);
    expect(webhook.headers['x-service-attempt']).toBe('1');
  });

  test('by another secret, over other bytes, too old, too new or missing is answered 401 and kept', async () => {
    const { url, lines } = await startTenant();
    const headers = { 'content-type': 'application/json' };
    const minutes = (count: number) => new Date(Date.now() + count * 60_000);
    const answers = [
      await deliver(url, { secret: OTHER_SECRET }),
      await deliver(url, { sentAt: minutes(-6) }),
      await deliver(url, { sentAt: minutes(6) }),
      await call(`${url}/webhook`, { method: 'POST', headers, body: BODY }),
      await call(`${url}/webhook`, { method: 'POST' }),
      await call(`${url}/webhook`, {
        method: 'POST',
        headers: { 'webhook-id': 'a.b', 'webhook-timestamp': '1e9', 'webhook-signature': 'v1,x' },
        body: 'not JSON',
      }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([401, 401, 401, 401, 401, 401]);
    const webhooks = await received(url);
    expect(webhooks.map((webhook: { verified: boolean }) => webhook.verified)).toEqual(Array(6).fill(false));
    expect(lines).toHaveLength(6);
    expect(lines[0]).toContain('✗ signature wrong');
  });

  test('with one of several secrets is accepted, as during a rotation', async () => {
    const { url } = await startTenant();
    expect((await deliver(url, { secret: OTHER_SECRET })).status).toBe(401);
    await postJson(`${url}/control/secrets`, { secrets: [OTHER_SECRET] });
    expect((await deliver(url, { secret: OTHER_SECRET })).status).toBe(200);
    expect((await deliver(url)).status).toBe(200);
  });

  test('follows the secrets file when it changes, and survives a missing or broken one', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'receiver-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const secretsFile = join(folder, 'secrets.json');
    const { url } = await startTenant({ secretsFile, secrets: [] });
    expect((await deliver(url)).status).toBe(401);
    await writeFile(secretsFile, JSON.stringify({ secrets: [SECRET] }));
    expect((await deliver(url)).status).toBe(200);
    await writeFile(secretsFile, '{"secr');
    expect((await deliver(url)).status).toBe(200);
    await writeFile(secretsFile, JSON.stringify({ secrets: [OTHER_SECRET, 'not a secret', 7] }));
    expect((await deliver(url)).status).toBe(401);
    expect((await deliver(url, { secret: OTHER_SECRET })).status).toBe(200);
  });
});

describe('duplicates', () => {
  test('are webhooks whose id was answered 2xx before, per name', async () => {
    const { url, lines } = await startTenant();
    await postJson(`${url}/control/behaviour`, { mode: 'status', times: 1 });
    const answers = [
      (await deliver(url)).status,
      (await deliver(url, { attempt: 2 })).status,
      (await deliver(url, { attempt: 3 })).status,
      (await deliver(url, { path: '/webhook/second' })).status,
    ];
    expect(answers).toEqual([500, 200, 200, 200]);
    const webhooks = await received(url);
    expect(webhooks.map((webhook: { duplicate: boolean }) => webhook.duplicate)).toEqual([
      ...[false, false, true, false],
    ]);
    expect(webhooks.at(-1).name).toBe('second');
    expect(lines.filter((line) => line.includes('duplicate'))).toHaveLength(1);
  });
});

describe('received list', () => {
  test('is given from a number on, and can be emptied without starting over', async () => {
    const { url } = await startTenant();
    await deliver(url, { id: 'evt_1' });
    await deliver(url, { id: 'evt_2' });
    expect((await received(url, 1)).map((webhook: { n: number }) => webhook.n)).toEqual([2]);
    const cleared = await call(`${url}/received`, { method: 'DELETE' });
    expect(await cleared.json()).toEqual({ cleared: 2 });
    await deliver(url, { id: 'evt_3' });
    expect(await received(url)).toMatchObject([{ n: 3 }]);
    expect((await call(`${url}/received?since=x`)).status).toBe(400);
  });
});

describe('behaviour', () => {
  test('status answers as told with Retry-After, so many times', async () => {
    const { url } = await startTenant();
    await postJson(`${url}/control/behaviour`, { mode: 'status', status: 429, retryAfter: 7, times: 2 });
    const first = await deliver(url);
    expect([first.status, first.headers.get('retry-after')]).toEqual([429, '7']);
    expect((await deliver(url)).status).toBe(429);
    expect((await deliver(url)).status).toBe(200);
  });

  test('slow answers late', async () => {
    const { url } = await startTenant();
    await postJson(`${url}/control/behaviour`, { mode: 'slow', delayMs: 120 });
    const startedAt = performance.now();
    expect((await deliver(url)).status).toBe(200);
    expect(performance.now() - startedAt).toBeGreaterThan(110);
  });

  test('hang never answers, reset cuts the connection; both keep what came', async () => {
    const { url, lines } = await startTenant();
    await postJson(`${url}/control/behaviour`, { mode: 'reset', times: 1 });
    await expect(deliver(url)).rejects.toThrow();
    await postJson(`${url}/control/behaviour`, { mode: 'hang' });
    const outcome = await Promise.race([
      deliver(url).then(
        () => 'answered',
        () => 'cut',
      ),
      new Promise((resolve) => setTimeout(() => resolve('waiting'), 150)),
    ]);
    expect(outcome).toBe('waiting');
    expect(await received(url)).toMatchObject([{ status: null }, { status: null }]);
    expect(lines).toHaveLength(2);
  });

  test('of one name leaves others alone, and ok ends everything', async () => {
    const { url } = await startTenant();
    await postJson(`${url}/control/behaviour`, { mode: 'status', name: 'bad', status: 410 });
    expect((await deliver(url, { path: '/webhook/bad' })).status).toBe(410);
    expect((await deliver(url, { path: '/webhook/good' })).status).toBe(200);
    await postJson(`${url}/control/behaviour`, { mode: 'ok' });
    expect((await deliver(url, { path: '/webhook/bad' })).status).toBe(200);
  });

  test.each([{}, { mode: 'sulk' }, { mode: 'status', status: 99 }, { mode: 'ok', extra: 1 }])(
    'refuses %o',
    async (behaviour) => {
      const { url } = await startTenant();
      expect((await postJson(`${url}/control/behaviour`, behaviour)).status).toBe(400);
    },
  );
});
