import { expect, onTestFinished, test } from 'vitest';
import { buildApp } from '../../../src/api/app.ts';
import { openLogger } from '../../../src/platform/logger.ts';
import { openObjectStore } from '../../../src/platform/object-store/object-store.ts';
import { fixtureBody } from '../../support/upstream-fixtures.ts';
import { addKey, signed, startTestApi, type TestApi, testConfig, WABA } from './api-harness.ts';

/** An app with a log that is kept, and the access lines of it so far. */
async function loggingApp({ database }: Pick<TestApi, 'database'>, accessLog: string, logLevel = 'info') {
  const lines: string[] = [];
  const config = testConfig({ HELIOGRAPH_ACCESS_LOG: accessLog, HELIOGRAPH_LOG_LEVEL: logLevel });
  const logger = openLogger(config, 'api', { write: (line) => void lines.push(line) });
  const objectStore = openObjectStore(config.objectStore);
  const app = buildApp({ config, database, objectStore, logger });
  onTestFinished(async () => {
    await app.close();
    objectStore.close();
  });
  const access = () =>
    lines.map((line) => JSON.parse(line)).filter(({ msg }: { msg: string }) => msg === 'request');
  const webhook = async () => {
    const payload = fixtureBody('st_sent_v24');
    return await app.inject({ method: 'POST', url: '/upstream/webhook', payload, headers: signed(payload) });
  };
  return { app, lines, access, webhook };
}

test('each answered request has a line: which route, what came of it, which key, and no secret', async () => {
  const api = await startTestApi();
  const { app, access, lines, webhook } = await loggingApp(api, 'requests');
  const { id, key, authorization } = await addKey(api.database);
  const me = await app.inject({ url: '/me?page=secret-of-the-query', headers: { authorization } });
  await app.inject({ url: '/api/external/messages/12345/media' });
  await app.inject({ url: '/received_media/secret-token' });
  await app.inject({ url: '/no/such/path' });
  await app.inject({ url: `/portal/w/${WABA}/conversations/12025550143` });
  await app.inject({ url: `/graph/v17.0/debug_token?input_token=${key}&access_token=${key}` });
  await app.inject('/healthz');
  await webhook();
  expect(access()).toMatchObject([
    {
      level: 30,
      method: 'GET',
      route: '/me',
      statusCode: 400,
      wabaId: WABA,
      keyId: id,
      requestId: me.headers['x-request-id'],
      responseBytes: Buffer.byteLength(me.body),
      durationMs: expect.any(Number),
    },
    { route: expect.stringMatching(/^\/api\/external\/messages\/:/), statusCode: 401 },
    { route: '/received_media/:token', statusCode: 404 },
    { route: 'unknown', statusCode: 404 },
    { route: '/portal/w/:wabaId/conversations/:id', statusCode: 303 },
    { route: expect.stringMatching(/^\/graph\/:version/), statusCode: 403 },
  ]);
  expect(lines.join('\n')).not.toMatch(
    new RegExp(`${key}|secret-of-the-query|secret-token|no/such/path|12025550143`),
  );
});

test('webhooks of upstream have lines only where they are asked for, and no request has any when it is off', async () => {
  const api = await startTestApi();
  const all = await loggingApp(api, 'all');
  expect((await all.webhook()).statusCode).toBe(200);
  expect(all.access()).toMatchObject([{ method: 'POST', route: '/upstream/webhook', statusCode: 200 }]);
  const off = await loggingApp(api, 'off');
  await off.webhook();
  await off.app.inject('/me');
  expect(off.access()).toEqual([]);
  const debug = await loggingApp(api, 'off', 'debug');
  await debug.app.inject('/me');
  expect(debug.access()).toMatchObject([{ level: 20, route: '/me', statusCode: 401 }]);
});
