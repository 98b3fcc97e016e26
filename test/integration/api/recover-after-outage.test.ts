import { expect, onTestFinished, test } from 'vitest';
import { makeDeliveryStart } from '../../../src/engine/deliveries/delivery-starter.ts';
import { publishEvents } from '../../../src/engine/deliveries/publish.ts';
import { loadConfig } from '../../../src/platform/config/config.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { openTemporalConnection } from '../../../src/platform/temporal/client-connection.ts';
import { startWorker } from '../../../src/worker/start-worker.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { testSettings } from '../../support/test-settings.ts';
import { answer, eventually, startReceiver } from '../../support/webhook-receiver.ts';
import { NUMBER, startTestApi, type TestApi, WABA } from './api-harness.ts';
import { externalClient } from './external-client.ts';

type Event = { id: string; eventId: string };
type Page = { data: Event[]; hasMore: boolean; nextCursor: string | null };

const HOUR_MS = 3_600_000;
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function client(api: TestApi) {
  const call = await externalClient(api);
  return async (method: 'GET' | 'POST', url: string, payload?: object) => {
    const response = await call(method, url, payload);
    if (response.statusCode >= 300)
      throw new Error(`${method} ${url}: ${response.statusCode} ${response.body}`);
    return response;
  };
}

async function publisher(database: Database) {
  const [waba] = await query<{ id: string }>(
    database,
    'select tenant_id as id from wabas where waba_id = :waba',
    { waba: WABA },
  );
  return async (eventId: string, { at = () => new Date(), holdMs = 0 } = {}) => {
    const event = {
      wabaId: WABA,
      tenantId: waba?.id ?? '',
      phoneNumberId: NUMBER,
      type: 'message' as const,
      eventId,
      laneKey: eventId,
      conversationId: null,
      messageId: null,
      dataJson: `{"n":"${eventId}"}`,
    };
    await database.transaction(async (trx) => {
      await publishEvents(trx, [event], at());
      await sleep(holdMs);
    });
  };
}

test('two days of events are read without a gap, a page at a time, while new ones come and commit in any order', async () => {
  const api = await startTestApi();
  const { database } = api;
  const call = await client(api);
  const publish = await publisher(database);
  const beganMs = Date.now();
  for (let index = 0; index < 96; index += 1) {
    await publish(`old-${index}`, { at: () => new Date(beganMs - 48 * HOUR_MS + (index * HOUR_MS) / 2) });
  }
  const arriving = Promise.all(
    Array.from({ length: 5 }, async (_, worker) => {
      for (let index = 0; index < 30; index += 1) {
        await publish(`new-${worker}-${index}`, { holdMs: (index * 37 + worker * 101) % 400 });
      }
    }),
  );
  const seen: Event[] = [];
  const total = 96 + 5 * 30;
  for (let cursor = ''; seen.length < total && Date.now() - beganMs < 40_000; ) {
    const page: Page = (await call('GET', `/api/external/events?order=asc&limit=17${cursor}`)).json();
    seen.push(...page.data);
    cursor = `&cursor=${page.nextCursor}`;
    if (!page.hasMore) await sleep(50);
  }
  await arriving;
  const stored = await query<Event>(
    database,
    `select 'evt_' || replace(cast(id as text), '-', '') as id, event_id as "eventId" from events order by id`,
  );
  expect(stored).toHaveLength(total);
  expect(seen.map(({ id, eventId }) => ({ id, eventId }))).toEqual(stored);
});

test('a tenant whose server was down finds what failed, sends itself a test, and has it all sent again', async () => {
  let settings: Record<string, string> = {};
  const api = await startTestApi(async (databaseUrl) => {
    settings = testSettings(databaseUrl);
    const config = loadConfig(settings);
    const temporal = openTemporalConnection(config);
    onTestFinished(temporal.close);
    return { config, startDelivery: makeDeliveryStart(config, temporal) };
  });
  const call = await client(api);
  const publish = await publisher(api.database);
  const receiver = await startReceiver(answer(503));
  onTestFinished(receiver.close);
  const endpoints = '/api/external/webhook-endpoints';
  const { id } = (
    await call('POST', endpoints, { url: `${receiver.url}/hook`, retryScheduleSeconds: [1] })
  ).json();
  const worker = await startWorker(loadConfig(settings), silentLogger);
  onTestFinished(worker.stop);
  // So few that the breaker does not open, which would have them wait longer.
  for (let index = 0; index < 3; index += 1) await publish(`lost-${index}`);
  const failed = async () => (await call('GET', '/api/external/events?state=failed')).json<Page>().data;
  await eventually('everything failed', async () => (await failed()).length, { is: 3 });
  const details = (await call('GET', `/api/external/events/${(await failed())[0]?.id}`)).json();
  expect(details.deliveries).toMatchObject([
    {
      endpointId: id,
      state: 'failed',
      attempts: [
        {
          attempt: 1,
          statusCode: 503,
          responseBody: 'answered',
          requestHeaders: { 'X-Service-Attempt': '1' },
        },
        { attempt: 2, statusCode: 503 },
      ],
    },
  ]);
  expect(JSON.stringify(details)).not.toMatch(/v1,|127\.0\.0\.1"/);

  receiver.behave(answer(200));
  receiver.received.length = 0;
  const probe = await call('POST', `${endpoints}/${id}/test`);
  expect([probe.statusCode, probe.json()]).toMatchObject([200, { state: 'delivered', statusCode: 200 }]);
  const selection = { endpointId: id, states: ['failed'] };
  expect(
    (await call('POST', '/api/external/replays', { ...selection, dryRun: true })).json().deliveries,
  ).toBe(3);
  const replay = (await call('POST', '/api/external/replays', selection)).json();
  await eventually('all sent again', async () => {
    const { state, outcomes } = (await call('GET', `/api/external/replays/${replay.id}`)).json();
    return state === 'done' && outcomes.delivered === 3;
  });
  expect(await failed()).toEqual([]);
  // In this order the list stays two seconds behind, so that nothing can appear before what it has shown.
  let list = await call('GET', '/api/external/events?type=message&order=asc');
  await eventually('all listed', async () => {
    list = await call('GET', '/api/external/events?type=message&order=asc');
    return list.json<Page>().data.length === 3;
  });
  const again = receiver.received.filter(({ headers }) => headers['x-service-replay'] === 'true');
  expect(again).toHaveLength(3);
  for (const { headers, body } of again) {
    expect(list.body).toContain(`"id":"${headers['webhook-id']}"`);
    expect(list.body).toContain(`"body":${body}}`);
  }
  // Test events are not counted.
  await expect
    .poll(async () => (await call('GET', `${endpoints}/${id}/statistics`)).json().total)
    .toMatchObject({ successes: 3, failures: 6 });
});
