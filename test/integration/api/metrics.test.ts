import { describe, expect, onTestFinished, test } from 'vitest';
import { findFreePorts } from '../../../dev/embedded/ports.ts';
import { makeApiMetrics } from '../../../src/api/api-metrics.ts';
import { scrapeOf, startMetricsServer } from '../../../src/platform/metrics/metrics-server.ts';
import { counted, samplesOf } from '../../support/metrics-text.ts';
import { addKey, signed, startTestApi } from './api-harness.ts';

const REQUESTS = 'heliograph_http_requests_total';

/** The API with its metrics on a port of their own. */
async function countingApi() {
  const metrics = makeApiMetrics();
  const api = await startTestApi(async () => ({ metrics }));
  const [port = 0] = await findFreePorts(1);
  const server = await startMetricsServer({
    setting: 'HELIOGRAPH_API_METRICS_PORT',
    host: '127.0.0.1',
    port,
    makeScrape: () => scrapeOf(metrics.registry),
  });
  onTestFinished(() => server.close());
  const ask = async (path: string) => await fetch(`http://127.0.0.1:${port}${path}`);
  return { ...api, ask, scrape: async () => await (await ask('/metrics')).text() };
}

describe('the metrics of the API', () => {
  test('count upstream webhooks by status, and the time until they are committed', async () => {
    const { app, scrape } = await countingApi();
    const post = (payload: string, headers: Record<string, string>) =>
      app.inject({ method: 'POST', url: '/upstream/webhook', payload, headers });
    await Promise.all([
      post('{}', signed('{}')),
      post('{"a":1}', signed('{"a":1}')),
      post('{}', signed('x')),
    ]);
    await post('{}', {});
    const text = await scrape();
    expect(counted(text, 'heliograph_upstream_webhooks_total')).toEqual({
      '{status="200"}': 2,
      '{status="401"}': 2,
    });
    expect(samplesOf(text).get('heliograph_upstream_webhook_duration_seconds_count')).toBe(2);
    expect(counted(text, REQUESTS)).toEqual({});
  });

  test('count other requests once each, by operation and class of the status', async () => {
    const { app, database, scrape } = await countingApi();
    const { authorization } = await addKey(database);
    const get = (url: string, headers = {}) => app.inject({ url, headers });
    await get('/me', { authorization });
    await get('/me', { authorization });
    await get('/me');
    await app.inject({ method: 'HEAD', url: '/api/external/test' });
    await get('/api/external/events/evt_1', { authorization });
    await get('/portal/sign-in');
    await get('/portal/endpoints');
    await get('/healthz');
    await get('/nothing/here');
    await app.inject({ method: 'DELETE', url: '/me' });
    const text = await scrape();
    expect(counted(text, REQUESTS)).toEqual({
      '{operation="getAccountIdentity",status="2xx"}': 2,
      '{operation="getAccountIdentity",status="4xx"}': 1,
      '{operation="testConnection",status="2xx"}': 1,
      '{operation="getEvent",status="4xx"}': 1,
      '{operation="portal",status="2xx"}': 1,
      '{operation="portal",status="4xx"}': 1,
      '{operation="other",status="2xx"}': 1,
      '{operation="unknown",status="4xx"}': 2,
    });
  });

  test('have no more operations than routes have names, whatever is asked for', async () => {
    const { app, scrape } = await countingApi();
    for (let n = 0; n < 50; n += 1) {
      await app.inject({ url: `/anything/${n}` });
      await app.inject({ url: `/api/external/conversations/${n}` });
      await app.inject({ url: `/portal/${n}` });
      await app.inject({ url: `/received_media/${n}` });
    }
    expect(Object.values(counted(await scrape(), REQUESTS)).toSorted()).toEqual([50, 50, 50, 50]);
  });

  test('are not to be had at the public port, and nothing else at theirs', async () => {
    const { app, ask } = await countingApi();
    for (const url of ['/metrics', '/metrics/', '/api/external/metrics', '/portal/metrics']) {
      expect((await app.inject({ url })).statusCode, url).toBe(404);
    }
    expect((await ask('/healthz')).status).toBe(404);
    expect((await ask('/metrics')).status).toBe(200);
  });
});
