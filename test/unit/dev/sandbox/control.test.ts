import { createHmac } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import { startReceiver } from '../../../../dev/sandbox/receiver/receiver.ts';
import { startUpstreamServer } from '../../../../dev/sandbox/upstream-server.ts';
import { verifyUpstreamSignature } from '../../../../src/api/inbound/upstream-webhook.ts';
import { APP_SECRET, call, graph, postJson, startSandbox } from './sandbox-harness.ts';

const FIXTURES = new URL('../../../fixtures/upstream/', import.meta.url);

function signatureOf(bytes: Buffer): string {
  return `sha256=${createHmac('sha256', APP_SECRET).update(bytes).digest('hex')}`;
}

describe('POST /sandbox/webhooks', () => {
  test('sends every wire fixture byte for byte with its published signature', async () => {
    const { url, ingress } = await startSandbox();
    const { bodies } = JSON.parse(await readFile(new URL('wire/signatures.json', FIXTURES), 'utf8'));
    for (const wire of Object.values<Record<string, string>>(bodies)) {
      const bytes = await readFile(new URL(`wire/${wire.file}`, FIXTURES));
      const sent = await postJson(`${url}/sandbox/webhooks`, { bodyBase64: bytes.toString('base64') });
      expect(await sent.json()).toMatchObject({
        status: 200,
        ms: expect.any(Number),
        sizeBytes: bytes.length,
      });
      const received = ingress.webhooks.pop();
      expect(received?.bytes.equals(bytes)).toBe(true);
      expect(received?.headers['x-hub-signature-256']).toBe(wire['X-Hub-Signature-256']);
      expect(received?.headers['content-type']).toBe('application/json');
    }
  });

  test('sends text as it is, so that numbers beyond 2^53 survive', async () => {
    const { url, ingress } = await startSandbox();
    const body = '{"object": "x",\n "n": 12345678901234567890.10, "é": "\\u00e9"}';
    await postJson(`${url}/sandbox/webhooks`, { body });
    expect(ingress.webhooks[0]?.bytes.toString()).toBe(body);
    expect(ingress.webhooks[0]?.headers['x-hub-signature-256']).toBe(signatureOf(Buffer.from(body)));
  });

  test('signs bytes that are no text as they are', async () => {
    const { url, ingress } = await startSandbox();
    const bytes = Buffer.from([0x7b, 0x00, 0xff, 0x80, 0xed, 0xa0, 0x80]);
    await postJson(`${url}/sandbox/webhooks`, { bodyBase64: bytes.toString('base64') });
    expect(ingress.webhooks[0]?.bytes).toEqual(bytes);
    expect(ingress.webhooks[0]?.headers['x-hub-signature-256']).toBe(signatureOf(bytes));
  });

  test('signs wrongly or not at all when told', async () => {
    const { url, ingress } = await startSandbox();
    await postJson(`${url}/sandbox/webhooks`, { body: {}, signature: 'wrong' });
    await postJson(`${url}/sandbox/webhooks`, { body: {}, signature: 'missing' });
    const [wrong, missing] = ingress.webhooks;
    expect(wrong?.headers['x-hub-signature-256']).toMatch(/^sha256=[0-9a-f]{64}$/);
    expect(wrong?.headers['x-hub-signature-256']).not.toBe(signatureOf(Buffer.from('{}')));
    expect(missing?.headers['x-hub-signature-256']).toBeUndefined();
  });

  test('passes on what the ingress answers, and says when nothing answers', async () => {
    const { url, ingress } = await startSandbox();
    ingress.statuses.push(401);
    expect(await (await postJson(`${url}/sandbox/webhooks`, { body: {} })).json()).toMatchObject({
      status: 401,
    });
    const alone = await startSandbox({ ingressUrl: 'http://127.0.0.1:1' });
    const silent = await postJson(`${alone.url}/sandbox/webhooks`, { body: {} });
    expect(silent.status).toBe(502);
    expect((await silent.json()).error.code).toBe('ingress_unreachable');
  });

  test.each([{}, { body: {}, signature: 'forged' }, null])('refuses %o', async (request) => {
    const { url } = await startSandbox();
    expect((await postJson(`${url}/sandbox/webhooks`, request)).status).toBe(400);
  });
});

describe('POST /sandbox/inbound', () => {
  const TYPES = [
    ...['text', 'image', 'video', 'audio', 'document', 'sticker', 'location', 'contacts', 'interactive'],
    ...[
      'button',
      'reaction',
      'order',
      'system',
      'request_welcome',
      'unsupported',
      'edit',
      'revoke',
      'type_of_2031',
    ],
  ];

  test.each(TYPES)('sends a signed %s message that the gateway would accept', async (type) => {
    const { url, ingress } = await startSandbox();
    const answer = await (await postJson(`${url}/sandbox/inbound`, { type })).json();
    expect(answer).toMatchObject({ status: 200, id: expect.stringMatching(/^wamid\./) });
    const { bytes = Buffer.alloc(0), headers = {} } = ingress.webhooks[0] ?? {};
    expect(verifyUpstreamSignature(bytes, headers['x-hub-signature-256'], [APP_SECRET])).toBe(true);
    expect(JSON.parse(bytes.toString())).toEqual(answer.body);
    const [{ id, changes }] = answer.body.entry;
    expect(changes[0].value.messages[0]).toMatchObject({ id: answer.id, type });
    expect(id).toBe('900000000000101');
  });

  test('refers to stored media by id and digest, and by an address that serves them', async () => {
    const { url, ingress } = await startSandbox();
    const headers = { 'content-type': 'image/png' };
    const stored = await call(`${url}/sandbox/media?filename=a.png`, {
      method: 'POST',
      headers,
      body: 'PNG',
    });
    const media = await stored.json();
    await postJson(`${url}/sandbox/inbound`, { type: 'image', mediaId: media.id, caption: 'é' });
    const body = JSON.parse(ingress.webhooks[0]?.bytes.toString() ?? '');
    const { image } = body.entry[0].changes[0].value.messages[0];
    expect(image).toMatchObject({ id: media.id, sha256: media.sha256, mime_type: 'image/png', caption: 'é' });
    expect(await (await graph(image.url)).text()).toBe('PNG');
    expect((await call(image.url)).status).toBe(401);
  });

  test('sends everything to the account of the printed API key unless another number is named', async () => {
    const { url, ingress } = await startSandbox();
    await postJson(`${url}/sandbox/inbound`, { type: 'payment', status: 'captured' });
    await postJson(`${url}/sandbox/inbound`, { type: 'status', id: 'wamid.x', status: 'read' });
    await postJson(`${url}/sandbox/inbound`, { type: 'order' });
    await postJson(`${url}/sandbox/inbound`, { type: 'order', phoneNumberId: '800000000000221' });
    const ids = ingress.webhooks.map(({ bytes }) => JSON.parse(bytes.toString()).entry[0].id);
    expect(ids).toEqual([...Array(3).fill('900000000000101'), '900000000000202']);
  });

  test.each([
    [{}, 400],
    [{ type: '' }, 400],
    [{ type: 'text', body: 7 }, 400],
    [{ type: 'text', colour: 'red' }, 400],
    [{ type: 'status', id: 'wamid.x' }, 400],
    [{ type: 'payment' }, 400],
    [{ type: 'text', phoneNumberId: '800000000000999' }, 404],
    [{ type: 'image', mediaId: 'nothing' }, 404],
    ['text', 400],
  ])('refuses %o with %i and a reason', async (request, status) => {
    const { url, ingress } = await startSandbox();
    const response = await postJson(`${url}/sandbox/inbound`, request);
    expect(response.status).toBe(status);
    expect((await response.json()).error.message).not.toBe('');
    expect(ingress.webhooks).toHaveLength(0);
  });
});

test('POST /sandbox/verify does the handshake and sees a wrong token', async () => {
  const { url } = await startSandbox();
  expect(await (await postJson(`${url}/sandbox/verify`, {})).json()).toMatchObject({
    status: 200,
    verified: true,
  });
  const other = await startSandbox({ verifyToken: 'another' });
  expect(await (await postJson(`${other.url}/sandbox/verify`, {})).json()).toMatchObject({ verified: false });
});

test('every JSON fixture body can be sent', async () => {
  const { url, ingress } = await startSandbox();
  const names = (await readdir(FIXTURES)).filter((name) => name.endsWith('.json'));
  for (const name of names) {
    const bytes = await readFile(new URL(name, FIXTURES));
    const sent = await postJson(`${url}/sandbox/webhooks`, { bodyBase64: bytes.toString('base64') });
    expect((await sent.json()).status).toBe(200);
  }
  expect(ingress.webhooks).toHaveLength(names.length);
});

describe('the sandbox is for development on this machine only', () => {
  const config = {
    host: '127.0.0.1',
    port: 0,
    appSecret: 'x',
    verifyToken: 'x',
    ingressUrl: 'http://127.0.0.1:1',
  };

  test.each(['production', ' Production '])('it refuses to start with HELIOGRAPH_MODE=%s', async (mode) => {
    const before = process.env.HELIOGRAPH_MODE;
    process.env.HELIOGRAPH_MODE = mode;
    try {
      await expect(startUpstreamServer(config)).rejects.toThrow(
        'does not run with HELIOGRAPH_MODE=production',
      );
      await expect(startReceiver(config)).rejects.toThrow('does not run with HELIOGRAPH_MODE=production');
    } finally {
      if (before === undefined) {
        delete process.env.HELIOGRAPH_MODE;
      } else {
        process.env.HELIOGRAPH_MODE = before;
      }
    }
  });

  test.each(['0.0.0.0', '::', '192.168.1.5', 'example.com'])('it refuses to listen on %s', async (host) => {
    await expect(startUpstreamServer({ ...config, host })).rejects.toThrow('loopback only');
    await expect(startReceiver({ host, port: 0 })).rejects.toThrow('loopback only');
  });

  test('its control API refuses pages of other sites and names that point here', async () => {
    const { url } = await startSandbox();
    const foreign = await postJson(
      `${url}/sandbox/inbound`,
      { type: 'text' },
      { origin: 'https://evil.example' },
    );
    expect(foreign.status).toBe(403);
    const { port } = new URL(url);
    const answer = await new Promise<string>((resolve) => {
      const socket = connect(Number(port), '127.0.0.1', () => {
        socket.write('GET /sandbox/requests HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n');
      });
      socket.once('data', (data) => resolve(data.toString()));
    });
    expect(answer).toMatch(/^HTTP\/1\.1 403 /);
    expect((await postJson(`${url}/sandbox/inbound`, { type: 'text' }, { origin: url })).status).toBe(200);
  });
});
