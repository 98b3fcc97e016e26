import type { FastifyInstance, InjectOptions } from 'fastify';
import { expect, onTestFinished, test } from 'vitest';
import { buildApp } from '../../../src/api/app.ts';
import { openLogger } from '../../../src/platform/logger.ts';
import { openObjectStore } from '../../../src/platform/object-store/object-store.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { startWorker } from '../../../src/worker/start-worker.ts';
import { formsOfNumber, objectsHolding, storeClient } from '../../support/database-scan.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { eventually, startReceiver } from '../../support/webhook-receiver.ts';
import { signed } from '../api/api-harness.ts';
import { NUMBER, startSendingBase, WABA } from '../messages/send/sending-stack.ts';
import { bodyOf, contactOf, messageOf, person } from './erasure-world.ts';

const ASHA = person('Asha', '12025550143');
const FORMS = formsOfNumber(ASHA.waId);
const held = (text: string) => FORMS.filter((form) => text.includes(form));

/** A response, and what of the number stands in its headers and in its body. */
type Seen = {
  request: string;
  statusCode: number;
  cacheControl: string;
  inHeaders: string[];
  inBody: string[];
};

/** API and worker with a log that is kept, and a store that keeps versions. */
async function startHeliograph() {
  const base = await startSendingBase({ HELIOGRAPH_ACCESS_LOG: 'all', HELIOGRAPH_LOG_LEVEL: 'debug' });
  onTestFinished(() => base.close());
  const { config, database, authorization } = base;
  const { bucket } = config.objectStore;
  await storeClient(config).makeBucket(bucket);
  await storeClient(config).setBucketVersioning(bucket, { Status: 'Enabled' });
  await execute(database, `update api_keys set scopes = '{read,send,erase,export}'`, {});
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  await addEndpoint(database, WABA, `${receiver.url}/hook`);
  const lines: string[] = [];
  const loggerOf = (name: 'api' | 'worker') =>
    openLogger(config, name, { write: (line) => void lines.push(line) });
  const worker = await startWorker(config, loggerOf('worker'));
  onTestFinished(() => worker.stop());
  const objectStore = openObjectStore(config.objectStore);
  const app = buildApp({ config, database, objectStore, logger: loggerOf('api') });
  onTestFinished(async () => {
    await app.close();
    objectStore.close();
  });
  return { ...base, lines, ...client(app, authorization) };
}

/** Asks with the key, and remembers what was seen. */
function client(app: FastifyInstance, authorization: string) {
  const seen: Seen[] = [];
  const ask = async (method: 'GET' | 'HEAD' | 'POST', url: string, options: InjectOptions = {}) => {
    const headers = { authorization, ...options.headers };
    const response = await app.inject({ method, url, ...options, headers });
    const { statusCode, body } = response;
    seen.push({
      request: `${method} ${url}`,
      statusCode,
      cacheControl: String(response.headers['cache-control']),
      inHeaders: held(JSON.stringify(response.headers)),
      inBody: held(body),
    });
    return response;
  };
  return { app, seen, ask };
}

type Heliograph = Awaited<ReturnType<typeof startHeliograph>>;

/** The customer sends a document that is named after the number and holds nothing else. */
async function receiveDocument({ ask, database, sandboxUrl }: Heliograph): Promise<string> {
  const stored = await fetch(`${sandboxUrl}/sandbox/media`, {
    method: 'POST',
    body: ASHA.waId,
    headers: { 'content-type': 'text/plain' },
  });
  const { id, sha256 } = (await stored.json()) as { id: string; sha256: string };
  const document = { id, sha256, mime_type: 'text/plain', filename: `${ASHA.waId}.txt` };
  const payload = bodyOf([
    { contacts: [contactOf(ASHA)], messages: [messageOf(ASHA, 1, { type: 'document', document })] },
  ]);
  expect((await ask('POST', '/upstream/webhook', { payload, headers: signed(payload) })).statusCode).toBe(
    200,
  );
  const find = () =>
    query<{ key: string }>(database, `select object_key as key from media where state = 'stored'`);
  await eventually('the document is stored', async () => (await find()).length, { is: 1 });
  const [file] = await find();
  return `/received_media/${file?.key}`;
}

/** A file that is named after the number is uploaded and sent to it. */
async function sendFile({ ask, database }: Heliograph): Promise<void> {
  const form = new FormData();
  form.set('file', new File([`for ${ASHA.waId}`], `${ASHA.waId}.txt`, { type: 'text/plain' }));
  const { headers, body } = new Response(form);
  const payload = Buffer.from(await new Response(body).arrayBuffer());
  const uploaded = await ask('POST', '/api/external/media', {
    payload,
    headers: Object.fromEntries(headers),
  });
  expect(uploaded.statusCode).toBe(201);
  const sent = await ask('POST', '/api/external/messages', {
    payload: {
      phoneNumberId: NUMBER,
      to: `+${ASHA.waId}`,
      type: 'document',
      document: { id: uploaded.json().id, filename: `${ASHA.waId}.txt` },
    },
  });
  expect([sent.statusCode, sent.body]).toEqual([200, expect.any(String)]);
  const isDone = async () =>
    (await query(database, `select 1 from outbound_messages where state = 'accepted'`)).length === 1;
  await eventually('the file is sent', isDone);
}

/** Everything that a browser, a proxy or a program may ask for about the customer. */
async function askForEverything({ ask }: Heliograph, file: string, ids: readonly string[]): Promise<void> {
  const payload = { customer: `+${ASHA.waId}` };
  await ask('GET', file);
  await ask('HEAD', file);
  await ask('GET', file, { headers: { range: 'bytes=0-3' } });
  await ask('GET', file, { headers: { 'if-none-match': '*' } });
  for (const id of ids) {
    await ask('GET', `/api/external/messages/${id}`);
    await ask('GET', `/api/external/messages/${id}/media`);
  }
  for (const list of ['conversations', 'messages', 'events', 'deliveries', 'erasures'])
    await ask('GET', `/api/external/${list}`);
  await ask('GET', `/api/external/conversations?customer=%2B${ASHA.waId}`);
  await ask('POST', '/api/external/exports', { payload });
}

test('neither the object store, nor what caches keep, nor the log holds a number that was erased', async () => {
  const heliograph = await startHeliograph();
  const { ask, config, database, lines, seen } = heliograph;
  const file = await receiveDocument(heliograph);
  await sendFile(heliograph);
  const messages = await query<{ id: string }>(database, 'select id from messages');
  const ids = messages.map(({ id }) => id);
  await askForEverything(heliograph, file, ids);
  // The scans see it where it is.
  expect((await objectsHolding(config, FORMS)).holding).toHaveLength(2);
  expect(seen.filter(({ inHeaders }) => inHeaders.length > 0).length).toBeGreaterThan(0);

  const asked = await ask('POST', '/api/external/erasures', { payload: { customer: `+${ASHA.waId}` } });
  expect(asked.statusCode).toBe(202);
  const isErased = async () => {
    await askForEverything(heliograph, file, ids);
    return (await ask('GET', asked.headers.location as string)).json().state === 'done';
  };
  await eventually('the customer is erased', isErased);
  // What was there to be cached may be shown to nobody without asking again.
  const cached = seen.filter(({ inHeaders, inBody }) => inHeaders.length + inBody.length > 0);
  expect(new Set(cached.map(({ cacheControl }) => cacheControl))).toEqual(
    new Set(['no-store', 'private, no-cache']),
  );

  seen.length = 0;
  await askForEverything(heliograph, file, ids);
  expect(seen.filter(({ inHeaders, inBody }) => inHeaders.length + inBody.length > 0)).toEqual([]);
  expect(seen.find(({ request }) => request === `GET ${file}`)?.statusCode).toBe(410);
  expect((await objectsHolding(config, FORMS)).holding).toEqual([]);
  expect(lines.filter((line) => line.includes('"msg":"request"')).length).toBeGreaterThan(ids.length);
  expect(lines.filter((line) => held(line).length > 0)).toEqual([]);
});
