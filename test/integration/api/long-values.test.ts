import { afterAll, beforeAll, expect, test } from 'vitest';
import { cpuMsOf, LONG_TEXTS, PUMPS } from '../../support/long-texts.ts';
import { drainInbox } from '../../support/take-in.ts';
import { addKey, NUMBER, signed, startTestApi, type TestApi, WABA } from './api-harness.ts';

/** By the square of its length it would be several seconds. */
const MAX_CPU_MS = 2_000;

let api: TestApi;
let close: () => Promise<void>;
let authorization: string;

beforeAll(async () => {
  api = await startTestApi(undefined, (end) => {
    close = end;
  });
  ({ authorization } = await addKey(api.database));
  // The first request of a kind compiles what it needs.
  for (const [, send] of Object.entries(SENDERS)) await send('a');
});
afterAll(() => close());

const get = async (url: string, headers: Record<string, string> = {}) =>
  (await api.app.inject({ url, headers: { authorization, ...headers } })).statusCode;
const post = async (url: string, payload: object, headers: Record<string, string> = {}) =>
  (await api.app.inject({ method: 'POST', url, headers: { authorization, ...headers }, payload })).statusCode;
const query = (text: string) => encodeURIComponent(text);

const PATHS = ['/api/external', '/api/external/messages', '/received_media', '/portal'];
const FILTERS = [
  ...['conversations?customer', 'messages?type', 'events?eventId', 'events?since', 'deliveries?cursor'],
  ...['deliveries?state', 'replays?limit'],
];
const HEADERS = [
  ...['authorization', 'accept', 'content-type', 'cookie', 'idempotency-key', 'if-none-match', 'range'],
  ...['user-agent', 'x-forwarded-for', 'x-hub-signature-256', 'x-request-id', 'origin'],
];

/** Each place where a text comes in from outside. */
const SENDERS: Record<string, (text: string) => Promise<unknown>> = {
  path: (text) => Promise.all(PATHS.map((path) => get(`${path}/${query(text)}`))),
  'query parameter': (text) =>
    Promise.all(FILTERS.map((filter) => get(`/api/external/${filter}=${query(text)}`))),
  header: (text) => Promise.all(HEADERS.map((name) => get('/api/external/me', { [name]: text.trim() }))),
  'message to send': (text) =>
    post(
      '/api/external/messages',
      { phoneNumberId: NUMBER, to: text, type: text, text: { body: text }, [text]: 1 },
      { 'idempotency-key': text.slice(0, 200) },
    ),
  recipient: (text) =>
    post('/api/external/messages', { phoneNumberId: NUMBER, to: text, type: 'text', text: { body: 'x' } }),
  'webhook endpoint': (text) =>
    Promise.all([
      post('/api/external/webhook-endpoints', { url: `https://example.com/${text}` }),
      post('/api/external/webhook-endpoints', { url: text, description: text, eventTypes: [text] }),
      post('/api/external/webhook-endpoints', {
        url: 'https://example.com',
        customHeaders: { [text]: text },
        clientCertificate: { certificate: text, privateKey: text },
      }),
    ]),
  'form of the portal': async (text) => {
    const headers = {
      'content-type': 'application/x-www-form-urlencoded',
      origin: 'https://heliograph.example',
    };
    const payload = `email=${query(text)}&password=${query(text)}&${query(text)}=1`;
    return (await api.app.inject({ method: 'POST', url: '/portal/sign-in', headers, payload })).statusCode;
  },
  'verification handshake': (text) =>
    get(
      `/upstream/webhook?hub.mode=${query(text)}&hub.challenge=${query(text)}&hub.verify_token=${query(text)}`,
    ),
  'webhook of upstream': async (text) => {
    const media = { id: text, mime_type: text, sha256: text, url: text, caption: text, filename: text };
    const people = { wa_id: text, user_id: text, profile: { name: text, username: text } };
    const messages = [
      { from: text, id: `wamid.${text}`, timestamp: text, type: text, [text]: text },
      { from: '12025550143', id: 'wamid.1', timestamp: '1790000000', type: 'document', document: media },
    ];
    const statuses = [{ id: text, status: text, timestamp: text, recipient_id: text, type: 'payment' }];
    const metadata = { display_phone_number: text, phone_number_id: NUMBER };
    const value = { metadata, contacts: [people], messages, statuses };
    const entry = [
      {
        id: WABA,
        changes: [
          { field: 'messages', value },
          { field: text, value: {} },
        ],
      },
    ];
    const payload = JSON.stringify({ object: text, entry });
    await api.app.inject({ method: 'POST', url: '/upstream/webhook', headers: signed(payload), payload });
    await drainInbox(api.database);
  },
};

test.each(Object.keys(SENDERS))(
  'a long text as %s costs no time by the square of its length',
  async (place) => {
    const slow: unknown[] = [];
    for (const [index, text] of LONG_TEXTS.entries()) {
      const cpuMs = await cpuMsOf(async () => SENDERS[place]?.(text));
      if (cpuMs > MAX_CPU_MS) slow.push([PUMPS[index], cpuMs]);
    }
    expect(slow).toEqual([]);
  },
);
