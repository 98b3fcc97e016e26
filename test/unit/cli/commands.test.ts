import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { postWebhook } from '../../../clients/cli/src/post-webhook.ts';
import { listenInTest } from '../../support/listen.ts';
import { directory, runCommand, runFor, serverOf, serviceOf } from './run-cli.ts';

const KEY = `ck_${'a1'.repeat(32)}`;
const SECRET = `whsec_${Buffer.alloc(32, 5).toString('base64')}`;
const LIST = { hasMore: false, nextCursor: null };

const refusal = (status: number, code: string) => [
  status,
  { error: { code, message: 'No.', requestId: 'req_1', param: null, advice: 'Look.' } },
];

describe('send without --from', () => {
  const numbers = [
    { phoneNumberId: '1', displayPhoneNumber: '+1 202 555 0100' },
    { phoneNumberId: '2', displayPhoneNumber: '+1 202 555 0101' },
  ];
  const sent = { state: 'accepted', serviceMessageId: '7', metaMessageId: null };
  const send = ['send', '--to', '+12025550143', '--text', 'Hi'];

  test('takes the only number', async () => {
    const responses = { '/me': { phoneNumbers: numbers.slice(0, 1) }, '/api/external/messages': sent };
    const { exitCode, bodies } = await runFor(send, responses);
    expect([exitCode, bodies['/api/external/messages']]).toEqual([
      0,
      expect.objectContaining({ phoneNumberId: '1' }),
    ]);
  });

  test('takes that of the newest conversation, and says so', async () => {
    const responses = {
      '/me': { phoneNumbers: numbers },
      '/api/external/conversations/search': { data: [{ phoneNumberId: '2' }], ...LIST },
      '/api/external/messages': sent,
    };
    const { exitCode, bodies, stderr } = await runFor(send, responses);
    expect([exitCode, bodies['/api/external/messages']]).toEqual([
      0,
      expect.objectContaining({ phoneNumberId: '2' }),
    ]);
    expect(stderr).toContain('From +1 202 555 0101');
  });

  test('names the numbers where there is no conversation yet', async () => {
    const responses = {
      '/me': { phoneNumbers: numbers },
      '/api/external/conversations/search': { data: [], ...LIST },
    };
    const { exitCode, stderr } = await runFor(send, responses);
    expect([exitCode, stderr]).toEqual([2, expect.stringMatching(/--from: 1 \(.*\), 2 \(/)]);
  });

  test.each([
    [400, 'invalid_parameter', false],
    [422, 'unknown_number', false],
    [503, 'service_unavailable', true],
  ])('after %i %s the hint to repeat it is there: %s', async (status, code, isThere) => {
    const responses = {
      '/me': { phoneNumbers: numbers.slice(0, 1) },
      '/api/external/messages': refusal(status, code),
    };
    const { stderr } = await runFor(send, responses);
    expect(stderr.includes('--idempotency-key')).toBe(isThere);
  });

  test.each([
    ['ISO-8859-1', Buffer.from('{"text":{"body":"café"}}', 'latin1')],
    ['UTF-16', Buffer.from('{"text":{"body":"café"}}', 'utf16le')],
  ])('refuses a file in %s', async (_name, bytes) => {
    const file = join(directory(), 'message.json');
    writeFileSync(file, bytes);
    const { exitCode, stderr, bodies } = await runFor(['send', '--body', `@${file}`], {});
    expect([exitCode, stderr, bodies]).toEqual([2, expect.stringContaining('no UTF-8'), {}]);
  });

  test('sends numbers of the body as they are written, for the service to judge', async () => {
    const body = '{"to":12025550143.0,"extra":{"id":900719925474099312,"huge":1e999}}';
    const { texts } = await runFor(['send', '--body', body], { '/api/external/messages': sent });
    expect(texts).toEqual([body]);
  });

  test.each(['12025550143', '0012025550143', '1.2025550143e10'])('passes --to %s on as text', async (to) => {
    const args = ['send', '--to', to, '--text', 'Hi', '--from', '1'];
    const { bodies } = await runFor(args, { '/api/external/messages': sent });
    expect(bodies['/api/external/messages']).toMatchObject({ to });
  });

  test('sends a file in UTF-8 as it is, also with a byte order mark', async () => {
    const file = join(directory(), 'message.json');
    writeFileSync(file, '\ufeff{"text":{"body":"café 👋"}}');
    const { exitCode, bodies } = await runFor(['send', '--body', `@${file}`], {
      '/api/external/messages': sent,
    });
    expect([exitCode, bodies['/api/external/messages']]).toEqual([0, { text: { body: 'café 👋' } }]);
  });
});

describe('deliveries', () => {
  const attempt = { attempt: 1, startedAt: 'then', durationMs: 1, statusCode: 200, error: null };
  const delivery = (id: string, endpointId: string, state: string) => ({
    id,
    endpointId,
    state,
    nextAttemptAt: null,
    attempts: [attempt],
  });
  const responses = {
    '/api/external/events': { data: [{ id: 'evt_1' }], ...LIST },
    '/api/external/events/evt_1': {
      deliveries: [
        delivery('dlv_1', '1', 'delivered'),
        delivery('dlv_2', '2', 'pending'),
        delivery('dlv_3', '3', 'pending'),
      ],
    },
  };
  test.each([
    [
      ['--state', 'pending'],
      ['dlv_2', 'dlv_3'],
    ],
    [['--state', 'delivered'], ['dlv_1']],
    [['--endpoint', '3'], ['dlv_3']],
    [[], ['dlv_1', 'dlv_2', 'dlv_3']],
  ])('%j lists those and no others of their events', async (options, ids) => {
    const { stdout } = await runFor(['deliveries', ...options, '--json'], responses);
    expect(JSON.parse(stdout).map(({ id }: { id: string }) => id)).toEqual(ids);
  });
});

describe('replay and retry', () => {
  test('nothing to replay is no failure', async () => {
    const responses = { '/api/external/replays': refusal(409, 'nothing_to_replay') };
    const { exitCode, stdout } = await runFor(['replay', '--since', '2h', '--wait'], responses);
    expect([exitCode, stdout]).toEqual([0, 'There is nothing to send again in this selection.\n']);
  });

  test('a dry run is a sentence, and JSON where that is asked for', async () => {
    const count = { dryRun: true, deliveries: 1, skipped: { pending: 2, noBody: 0, endpointGone: 0 } };
    const args = ['replay', '--since', '2h', '--dry-run'];
    const { stdout } = await runFor(args, { '/api/external/replays': count });
    expect(stdout).toBe('To send again: 1 delivery. Skipped: 2 deliveries. Nothing was sent.\n');
    const json = await runFor([...args, '--json'], { '/api/external/replays': count });
    expect(JSON.parse(json.stdout)).toEqual(count);
  });

  test.each([
    [0, 'Nothing waits for a retry there.\n'],
    [1, 'Attempted now: 1 delivery.\n'],
    [2, 'Attempted now: 2 deliveries.\n'],
  ])('a retry of %i is in words', async (retried, words) => {
    const path = '/api/external/webhook-endpoints/3/retry';
    const { stdout } = await runFor(['retry', '--endpoint', '3'], { [path]: { retried, more: false } });
    expect(stdout).toBe(words);
  });
});

describe('the secret', () => {
  test.each([['--secret-file'], ['HELIOGRAPH_WEBHOOK_SECRET'], ['--secret']])(
    'of %s signs what listen forwards, and is neither shown nor stored',
    async (way) => {
      const hooks = await serverOf((_request, response) => response.end());
      const body = JSON.stringify({
        id: 'evt_1',
        eventType: 'test',
        eventId: 'test_1',
        sequence: 1,
        createdAt: 'x',
        body: {},
      });
      const service = await serverOf((_request, response) =>
        response.writeHead(200, { 'content-type': 'text/event-stream' }).write(`id: 1\ndata: ${body}\n\n`),
      );
      const [profile, file] = [directory(), join(directory(), 'secret')];
      writeFileSync(file, `${SECRET}\n`);
      const given = { '--secret-file': [way, file], '--secret': [way, SECRET] }[way] ?? [];
      const env = {
        HELIOGRAPH_URL: service.url,
        HELIOGRAPH_API_KEY: KEY,
        HELIOGRAPH_CONFIG_DIR: profile,
        ...(way === 'HELIOGRAPH_WEBHOOK_SECRET' && { HELIOGRAPH_WEBHOOK_SECRET: SECRET }),
      };
      const args = ['listen', '--forward-to', hooks.url, '--idle-exit', '2', ...given];
      const { stdout, stderr } = await runCommand(args, env);
      expect(hooks.requests).toHaveLength(1);
      expect(stdout + stderr).not.toContain(SECRET);
      expect(readFileSync(join(profile, 'sessions.json'), 'utf8')).not.toContain(SECRET);
      const headers: IncomingHttpHeaders = hooks.requests[0]?.headers ?? {};
      const signed = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].flatMap((name) => [
        '--header',
        `${name}: ${headers[name]}`,
      ]);
      const verified = await runCommand(['verify', '--secret-file', file, '--body', '{}', ...signed]);
      expect(verified).toMatchObject({ exitCode: 0 });
    },
  );
});

describe('the thread of a conversation', () => {
  const path = '/api/external/conversations/42/thread';

  test('is passed with a text, and its owner is shown', async () => {
    const since = '2026-11-27T10:00:00.000Z';
    const passed = await runFor(['thread', '42', 'pass', '--metadata', 'refund'], {
      [path]: { thread: { owner: 'other', role: 'escalation', since } },
    });
    expect([passed.exitCode, passed.bodies[path]]).toEqual([0, { action: 'pass', metadata: 'refund' }]);
    expect(passed.stdout).toMatch(/other +escalation +2026-11-27/);
    const released = await runFor(['thread', '42', 'release'], { [path]: { thread: null } });
    expect([released.bodies[path], released.stdout]).toEqual([
      { action: 'release' },
      expect.stringMatching(/none/),
    ]);
  });

  test('knows three actions', async () => {
    const { exitCode, stderr } = await runFor(['thread', '42', 'steal'], {});
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('Actions: take, pass, release.')]);
  });
});

test('a forwarded webhook has the headers that the service sends, and no others but those of the connection', async () => {
  const { url, requests } = await serviceOf({});
  const { signal } = new AbortController();
  await postWebhook(url, { 'webhook-id': 'evt_1' }, Buffer.from('{}'), { signal, timeoutMs: 5_000 });
  expect(Object.keys(requests[0]?.headers ?? {}).sort()).toEqual([
    'connection',
    'content-length',
    'host',
    'webhook-id',
  ]);
});

test('a receiver that says 100 before its response has accepted the webhook', async () => {
  const server = createServer((_request, response) => {
    response.writeContinue();
    response.writeProcessing();
    response.end('ok');
  });
  const port = await listenInTest(server);
  const url = `http://127.0.0.1:${port}/`;
  const { signal } = new AbortController();
  const response = await postWebhook(url, {}, Buffer.from('{}'), { signal, timeoutMs: 5_000 });
  expect(response).toMatchObject({ status: 200, body: 'ok' });
});

test.each([
  ['verify', /--url|--key-file/],
  ['doctor', /--url|--key-file/],
])('%s has no option of the service', async (name, options) => {
  const { stdout } = await runCommand([name, '--help']);
  expect(stdout).not.toMatch(options);
});
