import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { startUpstreamServer } from '../../../dev/sandbox/upstream-server.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { traceIdOf } from '../../../src/platform/tracing.ts';
import { startApiProcess } from '../../support/application-process.ts';
import { listenInTest } from '../../support/listen.ts';
import { addEndpoint, testSecretBox } from '../../support/test-accounts.ts';
import { seededDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { answer, eventually, startReceiver } from '../../support/webhook-receiver.ts';
import { startWorkerProcess } from '../../support/worker-process.ts';
import { signed } from '../api/api-harness.ts';
import { messageBody } from '../messages/media/media-stack.ts';

const WABA = '900000000000101';
const TOKEN = 'EAAG-test-token';

type Span = {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  links: { traceId: string; spanId: string }[];
  attributes: { key: string }[];
  service: string;
};

type Request = {
  resourceSpans: {
    resource: { attributes: { key: string; value: { stringValue: string } }[] };
    scopeSpans: { spans: Omit<Span, 'service'>[] }[];
  }[];
};

/** Takes traces as a collector does: OTLP over HTTP, in its JSON form. */
async function startCollector() {
  const spans: Span[] = [];
  const texts: string[] = [];
  const refused: string[] = [];
  const server = createServer(async (request, response) => {
    const wanted = ['/v1/traces', 'application/json', 'secret-of-the-collector'];
    const got = [request.url, request.headers['content-type'], request.headers['x-key']];
    if (wanted.join() !== got.join()) refused.push(got.join());
    const body = (await json(request)) as Request;
    texts.push(JSON.stringify(body));
    for (const { resource, scopeSpans } of body.resourceSpans) {
      const service = resource.attributes.find(({ key }) => key === 'service.name')?.value.stringValue ?? '';
      spans.push(...scopeSpans.flatMap((scope) => scope.spans.map((span) => ({ ...span, service }))));
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  });
  const port = await listenInTest(server);
  return { url: `http://127.0.0.1:${port}`, spans, texts, refused };
}

/** Upstream, a tenant with an endpoint that refuses each first attempt, API and worker as processes. */
async function startProduct(collector: { url: string }) {
  const upstream = await startUpstreamServer({
    host: '127.0.0.1',
    port: 0,
    appSecret: 'test-app-secret',
    verifyToken: 'test-verify-token',
    ingressUrl: 'http://127.0.0.1:9',
    accessToken: TOKEN,
  });
  onTestFinished(() => upstream.close());
  const { database, url } = await seededDatabase(20);
  const sealed = testSecretBox.seal(TOKEN, `wabas|access_token|${WABA}`);
  await query(database, 'update wabas set access_token_sealed = :sealed where waba_id = :waba', {
    sealed,
    waba: WABA,
  });
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  receiver.behave((webhook, response) =>
    answer(webhook.headers['x-service-attempt'] === '1' ? 503 : 200)(webhook, response),
  );
  await addEndpoint(database, WABA, `${receiver.url}/hook`);
  const settings = testSettings(url, {
    HELIOGRAPH_UPSTREAM_GRAPH_URL: upstream.url,
    HELIOGRAPH_OBJECT_STORE_BUCKET: `test-${randomBytes(6).toString('hex')}`,
    HELIOGRAPH_DELIVERY_WORKFLOWS: 'always',
    HELIOGRAPH_TRACES_URL: collector.url,
    HELIOGRAPH_TRACES_HEADERS: 'x-key=secret-of-the-collector',
  });
  const worker = startWorkerProcess(settings);
  onTestFinished(() => worker.stop());
  const api = await startApiProcess(settings);
  onTestFinished(() => api.kill());
  await worker.ready();
  const media = await fetch(`${upstream.url}/sandbox/media`, {
    method: 'POST',
    body: Uint8Array.from([0xff, 0xd8, 0xff, 0xe0, 1, 2, 3]),
    headers: { 'content-type': 'image/jpeg' },
  });
  const { id, sha256 } = (await media.json()) as { id: string; sha256: string };
  return { api, receiver, image: { type: 'image', image: { id, mime_type: 'image/jpeg', sha256 } } };
}

test('one trace has all that was done for a message, from the body of upstream to the last attempt, media included', async () => {
  const collector = await startCollector();
  const { api, receiver, image } = await startProduct(collector);
  const { body, upstreamId } = messageBody(image);
  const headers = signed(body, 'test-app-secret');
  const response = await fetch(`${api.url}/upstream/webhook`, {
    method: 'POST',
    body: new Uint8Array(body),
    headers,
  });
  expect(response.status).toBe(200);
  const types = () => receiver.received.map(({ headers: { 'x-service-event-type': type } }) => type);
  await eventually('both events, twice each', () => types().length >= 4);
  expect(new Set(types())).toEqual(new Set(['message', 'media.ready']));

  const traceId = traceIdOf(WABA, upstreamId);
  const spans = () => collector.spans.filter((span) => span.traceId === traceId);
  const names = () => spans().map(({ name }) => name);
  const told = (name: string, times: number) => names().filter((each) => each === name).length >= times;
  await eventually(
    'four attempts are told, two of them of activities',
    () => told('record', 4) && told('activity attemptDelivery', 2),
  );
  const count = (wanted: string) => names().filter((name) => name === wanted).length;
  expect({ ...Object.fromEntries([...new Set(names())].map((name) => [name, count(name)])) }).toMatchObject({
    receive: 1,
    store: 1,
    intake: 1,
    publish: 2,
    attempt: 4,
    record: 4,
    'media download': 1,
    'activity fetchAndStoreMedia': 1,
    'activity attemptDelivery': expect.any(Number),
    claim: expect.any(Number),
    'start workflow deliverEvent': expect.any(Number),
  });
  const root = spans().find(({ name }) => name === 'receive');
  expect([root?.parentSpanId, root?.service]).toEqual([undefined, 'heliograph-api']);
  const known = new Set(spans().map(({ spanId }) => spanId));
  for (const { name, parentSpanId, startTimeUnixNano, endTimeUnixNano } of spans()) {
    if (name !== 'receive') expect(known, name).toContain(parentSpanId);
    expect(BigInt(endTimeUnixNano) >= BigInt(startTimeUnixNano), name).toBe(true);
  }
  // A retry is made by a workflow: its attempt is below the activity, which names the workflow.
  const byId = new Map(spans().map((span) => [span.spanId, span]));
  const parents = spans()
    .filter(({ name }) => name === 'attempt')
    .map(({ parentSpanId = '' }) => byId.get(parentSpanId));
  const retried = parents.filter((parent) => parent?.name === 'activity attemptDelivery');
  expect(retried.length).toBeGreaterThanOrEqual(2);
  for (const parent of retried)
    expect(parent?.attributes.map(({ key }) => key)).toContain('heliograph.workflow_id');
  expect(collector.refused).toEqual([]);
  // An id of upstream may hold the customer's phone number.
  expect(collector.texts.join()).not.toMatch(new RegExp(`${upstreamId}|12025550143|${TOKEN}`));
});
