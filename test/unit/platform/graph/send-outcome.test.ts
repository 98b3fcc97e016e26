import { createServer, type ServerResponse } from 'node:http';
import { createServer as createTcpServer, type Socket } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openSendClient } from '../../../../src/platform/graph/graph-client.ts';
import type { SendOutcome } from '../../../../src/platform/graph/graph-send.ts';
import { listenInTest } from '../../../support/listen.ts';

type Answer = (response: ServerResponse) => void;

async function sendTo(url: string, timeoutMs = 2_000): Promise<SendOutcome> {
  const upstream = { graphUrl: url, graphVersion: 'v26.0' };
  const config = { upstream, sending: { timeoutMs } } as unknown as Parameters<typeof openSendClient>[0];
  const client = openSendClient(config);
  onTestFinished(() => client.close());
  return await client.sendMessage('800000000000111', '{"type":"text"}', 'token');
}

/** Sends to a server that answers so; also tells what it got. */
async function answered(answer: Answer, timeoutMs?: number) {
  const bodies: string[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    bodies.push(Buffer.concat(chunks).toString());
    answer(response);
  });
  const port = await listenInTest(server);
  const outcome = await sendTo(`http://127.0.0.1:${port}`, timeoutMs);
  return { outcome, bodies };
}

const json =
  (status: number, body: unknown, headers: Record<string, string> = {}): Answer =>
  (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  };

describe('an attempt to send', () => {
  test('that upstream takes gives its id, and sends the bytes as they are, once', async () => {
    const contacts = [{ input: '+5511987654321', wa_id: '551187654321' }];
    const messages = [{ id: 'wamid.x', message_status: 'held_for_quality_assessment' }];
    const { outcome, bodies } = await answered(json(200, { contacts, messages }));
    expect(outcome).toEqual({
      kind: 'accepted',
      upstreamId: 'wamid.x',
      messageStatus: 'held_for_quality_assessment',
      waId: '551187654321',
    });
    expect(bodies).toEqual(['{"type":"text"}']);
  });

  test.each([
    ['an error of its own', json(400, { error: { code: 131047, message: 'No' } }), 131047, false],
    ['an outage with a code', json(500, { error: { code: 131000, is_transient: true } }), 131000, true],
    ['429 without a word', json(429, ''), null, true],
    ['400 that is no JSON', json(400, '<html>'), null, false],
    ['a code that is none', json(400, { error: { code: '7' } }), null, false],
    ['an error that is none', json(404, { error: 'x' }), null, false],
  ])('is refused by %s', async (_name, answer, code, transient) => {
    const { outcome } = await answered(answer);
    expect(outcome).toMatchObject({ kind: 'refused', code, transient });
  });

  test('keeps what upstream asks to wait', async () => {
    const { outcome } = await answered(json(429, { error: { code: 4 } }, { 'retry-after': '30' }));
    expect(outcome).toMatchObject({ kind: 'refused', retryAfterMs: 30_000 });
  });

  test.each<[string, Answer]>([
    ['a gateway that lost its upstream', json(502, '<html>Bad gateway</html>')],
    ['a bare 503', json(503, '')],
    ['success without an id', json(200, { messages: [] })],
    ['success with an id that is none', json(200, { messages: [{ id: 7 }] })],
    ['success with an id that cannot be stored', json(200, { messages: [{ id: 'a\0' }] })],
    ['success that is no JSON', json(200, 'OK')],
    ['a redirect', json(302, '', { location: 'https://elsewhere.example' })],
    ['a cut connection', (response) => response.destroy()],
    [
      'a cut answer',
      (response) => {
        response.writeHead(200, { 'content-length': '100' });
        response.write('{"messages"');
        setTimeout(() => response.destroy(), 20);
      },
    ],
    [
      'an answer that never ends',
      (response) => {
        response.writeHead(200);
        const timer = setInterval(() => response.write(Buffer.alloc(65_536)), 1);
        response.once('close', () => clearInterval(timer));
      },
    ],
    ['silence', () => {}],
  ])('is ambiguous after %s', async (name, answer) => {
    const { outcome, bodies } = await answered(answer, 700);
    expect(outcome.kind).toBe(name === 'a redirect' ? 'refused' : 'ambiguous');
    expect(bodies).toHaveLength(1);
  });

  test('was not sent when nobody listens, or no such host exists', async () => {
    expect((await sendTo('http://127.0.0.1:1')).kind).toBe('not_sent');
    expect((await sendTo('http://no-such-host.invalid')).kind).toBe('not_sent');
  });

  test('was not sent when TLS fails', async () => {
    const server = createTcpServer((socket: Socket) => socket.destroy());
    const port = await listenInTest(server);
    const outcome = await sendTo(`https://127.0.0.1:${port}`);
    expect(outcome.kind).toBe('not_sent');
  });
});
