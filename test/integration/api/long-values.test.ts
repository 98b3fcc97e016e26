import { beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { openObjectStore } from '../../../src/platform/object-store/object-store.ts';
import { cpuMsOf, LONG_TEXTS, PUMPS } from '../../support/long-texts.ts';
import { type DocumentedOperation, operationsOf } from '../../support/openapi-document.ts';
import { drainInbox } from '../../support/take-in.ts';
import { addReceivedFile } from '../messages/media/received-file.ts';
import { apiOfFile, freshKeyHolder, type KeyHolder, PUBLIC_URL, signed, testConfig } from './api-harness.ts';
import { exampleBodies, PLACE, pathOf, templatesOf } from './documented-requests.ts';

/** By the square of its length it would be several seconds. */
const MAX_CPU_MS = 2_000;

/** What fits into the headers of a request. */
const MAX_HEADER_CHARS = 15_000;

/** Of the External API, but for what is sent. */
const MAX_BODY_BYTES = 64 * 1024;
const MAX_SEND_BYTES = 256 * 1024;

const api = apiOfFile(async () => ({ config: testConfig({ HELIOGRAPH_TRUST_PROXY: '127.0.0.1' }) }));
/** Its WABA is not that of the examples: what they would send has no number to leave from. */
let holder: KeyHolder;
let operations: DocumentedOperation[];

beforeAll(async () => {
  const document = (await api.app.inject('/api/external/openapi.json')).json();
  operations = operationsOf(document).filter(({ security }) => security?.length !== 0);
});
beforeEach(async () => {
  holder = await freshKeyHolder(api.database);
});

type Tried = { method?: string; url: string; headers?: Record<string, string>; payload?: string };

/** Sends it, and says what is wrong with the answer, or with the time that it took. */
async function problemOf(request: Tried): Promise<unknown[]> {
  let status = 0;
  const cpuMs = await cpuMsOf(async () => {
    status = (await api.app.inject({ method: 'GET', ...request } as never)).statusCode;
  });
  // A body that is too large was read by nobody.
  const isWrong = status >= 500 || status === 413 || cpuMs > MAX_CPU_MS;
  return isWrong
    ? [[request.method, request.url.slice(0, 80), request.payload?.slice(0, 80), status, cpuMs]]
    : [];
}

/** As much of a text as leaves `sizeBytes` for a JSON body, less what else is in it. */
function jsonUpTo(text: string, sizeBytes: number): string {
  const quoted = JSON.stringify(text);
  const room = Math.floor((sizeBytes * text.length) / Math.max(sizeBytes, Buffer.byteLength(quoted)));
  return JSON.stringify(`${text.slice(0, room - 2)}!`);
}

function* documentedRequests(operation: DocumentedOperation, text: string): Generator<Tried> {
  const { method, path, parameters } = operation;
  const content = { 'content-type': 'application/json', authorization: holder.authorization };
  const bodies = exampleBodies(operation);
  const valid = bodies.length === 0 ? {} : { payload: JSON.stringify(bodies[0]) };
  const base = { method, headers: content, ...valid };
  const short = text.slice(0, MAX_HEADER_CHARS / 3);
  for (const { name, in: place } of parameters) {
    const inUrl = encodeURIComponent(short);
    if (place === 'path') yield { ...base, url: pathOf(operation, { name, text: inUrl }) };
    if (place === 'query') yield { ...base, url: `${pathOf(operation)}?${name}=${inUrl}` };
    if (place === 'header')
      yield { ...base, url: pathOf(operation), headers: { ...content, [name]: headerOf(text) } };
  }
  const limit = path.endsWith('/messages') && method === 'POST' ? MAX_SEND_BYTES : MAX_BODY_BYTES;
  for (const body of bodies) {
    for (const template of templatesOf(body)) {
      const json = jsonUpTo(text, limit - template.length - 100);
      const payload = template.replace(`"${PLACE}"`, () => json);
      yield { ...base, url: pathOf(operation), payload };
    }
  }
}

function headerOf(text: string): string {
  return `a${text.slice(0, MAX_HEADER_CHARS).replace(/[^\x20-\x7e]/g, '=')}a`;
}

test('every parameter and every member of the External API takes a long text, up to what a request may have', async () => {
  const problems: unknown[] = [];
  let count = 0;
  for (const operation of operations) {
    for (const text of LONG_TEXTS) {
      for (const request of documentedRequests(operation, text)) {
        problems.push(...(await problemOf(request)));
        count += 1;
      }
    }
  }
  expect(problems.slice(0, 20)).toEqual([]);
  expect(count).toBeGreaterThan(2_000);
});

/** Headers, at the routes that read them, and paths. */
function* readHeaders(text: string, filePath: string): Generator<Tried> {
  const { authorization } = holder;
  for (const name of ['range', 'if-none-match', 'if-range'])
    yield { url: filePath, headers: { range: 'bytes=0-1', [name]: text } };
  for (const range of [`bytes=${text}`, `bytes=0-1,${text}`]) yield { url: filePath, headers: { range } };
  yield { url: '/api/external/openapi.json', headers: { 'if-none-match': text } };
  for (const name of [
    'cookie',
    'origin',
    'sec-fetch-site',
    'accept',
    'user-agent',
    'x-forwarded-for',
    'host',
  ])
    yield { url: '/portal/account', headers: { [name]: text } };
  const form = { 'content-type': 'application/x-www-form-urlencoded', origin: PUBLIC_URL };
  for (const name of ['cookie', 'origin', 'referer', 'content-type'])
    yield {
      method: 'POST',
      url: '/portal/sign-in',
      payload: 'email=a&password=b',
      headers: { ...form, [name]: text },
    };
  const webhook = { method: 'POST', url: '/upstream/webhook', payload: '{}' };
  for (const signature of [text, `sha256=${text}`])
    yield { ...webhook, headers: { 'x-hub-signature-256': signature } };
  yield { ...webhook, headers: { ...signed('{}'), 'content-type': text } };
  for (const name of ['authorization', 'idempotency-key', 'content-type', 'x-request-id', 'accept-encoding'])
    yield {
      method: 'POST',
      url: '/api/external/messages',
      payload: '{}',
      headers: { authorization, [name]: text },
    };
  yield { url: '/me', headers: { authorization: `Bearer ${text}` } };
  for (const path of ['/api/external', '/received_media', '/portal', '/portal/w', ''])
    yield {
      url: `${path}/${encodeURIComponent(text.slice(0, MAX_HEADER_CHARS / 3))}`,
      headers: { authorization },
    };
}

test('every header that a route reads takes a long text there, and so does every path', async () => {
  const problems: unknown[] = [];
  const store = openObjectStore(testConfig().objectStore);
  onTestFinished(() => store.close());
  await store.ensureBucket();
  const filePath = await addReceivedFile({ database: api.database, store }, { ...holder, sizeBytes: 1_000 });
  for (const text of LONG_TEXTS)
    for (const request of readHeaders(headerOf(text), filePath)) problems.push(...(await problemOf(request)));
  expect(problems).toEqual([]);
});

test('every parameter of the verification handshake takes a long text', async () => {
  const problems: unknown[] = [];
  const valid = { 'hub.mode': 'subscribe', 'hub.challenge': '1', 'hub.verify_token': 'verify-me' };
  for (const text of LONG_TEXTS) {
    for (const name of Object.keys(valid)) {
      const query = new URLSearchParams({ ...valid, [name]: text.slice(0, MAX_HEADER_CHARS / 3) });
      problems.push(...(await problemOf({ url: `/upstream/webhook?${query}` })));
    }
  }
  expect(problems).toEqual([]);
});

/** A webhook of upstream with every member that is read. */
function upstreamBody(): object {
  const at = PLACE;
  const media = { id: at, mime_type: at, sha256: at, url: at, caption: at, filename: at };
  const people = { wa_id: at, user_id: at, profile: { name: at, username: at } };
  const messages = [
    { from: at, id: at, timestamp: at, type: at, unknown: at, text: { body: at }, context: { id: at } },
    { from: '12025550143', id: 'wamid.1', timestamp: '1790000000', type: 'document', document: media },
    {
      from: '12025550143',
      id: 'wamid.2',
      timestamp: '1790000000',
      type: 'order',
      order: { catalog_id: at, product_items: [{ product_retailer_id: at, item_price: at, currency: at }] },
    },
  ];
  const error = { code: at, title: at, message: at, error_data: { details: at } };
  const statuses = [
    { id: at, status: at, timestamp: at, recipient_id: at, errors: [error] },
    {
      id: 'p',
      status: 'captured',
      recipient_id: at,
      type: 'payment',
      payment: { reference_id: at, amount: at },
    },
  ];
  const metadata = { display_phone_number: at, phone_number_id: holder.number };
  const value = { metadata, contacts: [people], messages, statuses };
  const changes = [
    { field: 'messages', value },
    { field: at, value: {} },
  ];
  return { object: at, entry: [{ id: holder.wabaId, changes }] };
}

/** Each with a long text in one place, and short ones in the others. */
function webhooksWith(text: string): string[] {
  const parts = JSON.stringify(upstreamBody()).split(PLACE);
  const long = JSON.stringify(text).slice(1, -1);
  return parts
    .slice(1)
    .map((_, n) => `${parts.slice(0, n + 1).join('1')}${long}${parts.slice(n + 1).join('1')}`);
}

test('every member of a webhook of upstream takes a long text, and its intake does', async () => {
  const problems: unknown[] = [];
  for (const [index, text] of LONG_TEXTS.entries()) {
    for (const payload of webhooksWith(text)) {
      const request = { method: 'POST', url: '/upstream/webhook', headers: signed(payload), payload };
      problems.push(...(await problemOf(request)));
    }
    const cpuMs = await cpuMsOf(() => drainInbox(api.database));
    if (cpuMs > 2 * MAX_CPU_MS) problems.push(['intake', PUMPS[index], cpuMs]);
  }
  expect(problems).toEqual([]);
});
