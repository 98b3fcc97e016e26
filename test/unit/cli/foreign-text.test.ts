import { createServer } from 'node:net';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { makeOutput } from '../../../clients/cli/src/output.ts';
import { listenInTest } from '../../support/listen.ts';
import { runCommand, serverOf, serviceOf } from './run-cli.ts';

const KEY = `ck_${'a1'.repeat(32)}`;

/** Clears the screen, sets the title, in the forms of C0 and of C1, and colours as the tool itself makes them. */
const EVIL = 'a\u001b[2Jb\u009b2Jc\u009d0;title\u009cd\u001b]0;t\u0007e\u001b[31mf\u007fg\rh\u0008i';

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const OBEYED = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/;

const delivery = {
  id: EVIL,
  endpointId: EVIL,
  state: EVIL,
  nextAttemptAt: EVIL,
  attempts: [
    { attempt: 1, startedAt: EVIL, durationMs: 1, statusCode: null, error: { class: 'x', message: EVIL } },
  ],
};
const event = {
  id: EVIL,
  eventType: EVIL,
  eventId: EVIL,
  sequence: 1,
  createdAt: EVIL,
  occurredAt: EVIL,
  deliverySummary: { pending: 1, delivered: 0, failed: 0, dropped: 0 },
  deliveries: [delivery],
  body: { data: { message: { text: { body: EVIL } } } },
};
const conversation = { phoneNumberId: '1' };
const optOut = {
  customer: { waId: EVIL, userId: EVIL, name: EVIL, username: EVIL },
  ...{ phoneNumberId: EVIL, scope: EVIL, source: EVIL, since: EVIL, reason: EVIL },
};
const RESPONSES = {
  '/me': {
    businessName: EVIL,
    wabaId: EVIL,
    phoneNumbers: [
      { phoneNumberId: '1', displayPhoneNumber: EVIL },
      { phoneNumberId: '2', displayPhoneNumber: EVIL },
    ],
  },
  '/api/external/key': { prefix: EVIL, lastFour: EVIL, name: EVIL, scopes: [EVIL], expiresAt: EVIL },
  '/api/external/events': { data: [event], hasMore: false, nextCursor: null },
  '/api/external/events/x': event,
  '/api/external/webhook-endpoints': {
    data: [
      {
        id: EVIL,
        mode: EVIL,
        eventTypes: [EVIL],
        waiting: { count: 1, more: false },
        url: EVIL,
        description: EVIL,
      },
      {
        id: '2',
        mode: 'open',
        eventTypes: null,
        waiting: { count: 1, more: false },
        url: EVIL,
        description: EVIL,
      },
    ],
    hasMore: false,
    nextCursor: null,
  },
  '/api/external/conversations/search': { data: [conversation], hasMore: false, nextCursor: null },
  '/api/external/messages': { state: EVIL, serviceMessageId: EVIL, metaMessageId: EVIL, advice: EVIL },
  '/api/external/opt-outs/search': { data: [optOut], hasMore: false, nextCursor: null },
  '/api/external/message-templates': {
    data: [
      {
        ...{ id: '1', name: EVIL, language: EVIL, status: EVIL, category: EVIL, quality: EVIL },
        ...{ rejectedReason: EVIL, components: null, updatedAt: EVIL },
      },
    ],
    hasMore: false,
    nextCursor: null,
  },
  '/api/external/opt-outs': optOut,
  '/api/external/opt-outs/words': { optOutWords: [EVIL], optInWords: [] },
  '/api/external/opt-outs/end': { ended: EVIL, left: [optOut] },
  '/api/external/webhook-endpoints/1/test': {
    state: EVIL,
    eventId: EVIL,
    id: EVIL,
    statusCode: null,
    error: EVIL,
    durationMs: 1,
  },
};

const COMMANDS = [
  ...[['whoami'], ['events'], ['events', 'x'], ['deliveries', 'x'], ['endpoints'], ['trigger', 'status']],
  ...[
    ['trigger', 'status', '--to', '1'],
    ['send', '--to', '1', '--text', 'x'],
    ['templates'],
    ['opt-outs'],
    ['opt-out', '1', '--scope', 'all'],
    ['end-opt-out', '1', '--evidence', 'x'],
    ['opt-out-words'],
  ],
];

test.each(COMMANDS)('no text of others reaches a terminal as a command: %s %s', async (...command) => {
  const { url } = await serviceOf(RESPONSES);
  for (const more of [[], ['--json']]) {
    const env = { HELIOGRAPH_URL: url, HELIOGRAPH_API_KEY: KEY, NO_COLOR: '1' };
    const { stdout, stderr } = await runCommand([...command, ...more], env);
    expect(stdout + stderr).toMatch(/a(\ufffd|\\u001b)\[2Jb/);
    expect(stdout + stderr).not.toMatch(OBEYED);
  }
});

test.each(COMMANDS)(
  'nor does an error of the service, or what a server responds in its place: %s %s',
  async (...command) => {
    const error = { code: EVIL, message: EVIL, requestId: EVIL, param: EVIL, advice: EVIL };
    for (const [status, body] of [
      [422, JSON.stringify({ error })],
      [401, JSON.stringify({ error })],
      [200, JSON.stringify(EVIL)],
      [500, EVIL],
    ] as const) {
      const { url } = await serverOf((_request, response) =>
        response.writeHead(status, { 'content-type': 'application/json' }).end(body),
      );
      const env = { HELIOGRAPH_URL: url, HELIOGRAPH_API_KEY: KEY, NO_COLOR: '1' };
      const { exitCode, stdout, stderr } = await runCommand(command, env);
      expect(exitCode).not.toBe(0);
      expect(stdout + stderr).not.toMatch(OBEYED);
    }
  },
);

test('nor does what a server that speaks no HTTP sends, by doctor or by a wrong URL', async () => {
  const server = createServer((socket) => socket.on('error', () => {}).end(`HTTP/1.1 ${EVIL}\r\n\r\n`));
  const port = await listenInTest(server);
  const url = `http://127.0.0.1:${port}`;
  for (const args of [
    ['doctor', url],
    ['whoami', '--url', url],
  ]) {
    const { stdout, stderr } = await runCommand(args, { HELIOGRAPH_API_KEY: KEY, NO_COLOR: '1' });
    expect(stdout + stderr).not.toMatch(OBEYED);
  }
});

test('a line has the colours of the tool and nothing else of a terminal, whatever is in it', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const written: string[] = [];
      const stream = { isTTY: true, write: (piece: string) => written.push(piece) > 0 };
      const output = makeOutput(stream, stream, { FORCE_COLOR: '1' });
      output.line(output.style('red', text));
      output.note(text + EVIL);
      output.progress(text + EVIL);
      output.json({ text });
      const [line = '', ...others] = written;
      expect(line.startsWith('\u001b[31m') && line.endsWith('\u001b[0m\n')).toBe(true);
      expect(line.slice('\u001b[31m'.length, -'\u001b[0m\n'.length)).not.toMatch(OBEYED);
      expect(others.join('').replaceAll(/\r *\r/g, '')).not.toMatch(OBEYED);
      expect(JSON.parse(written.at(-1) ?? '')).toEqual({ text });
    }),
  );
});
