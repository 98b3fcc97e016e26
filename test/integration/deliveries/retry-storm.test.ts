import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { insertBodies } from '../../../src/inbound/inbox.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { bodyOf, textMessage } from '../../support/load/upstream-bodies.ts';
import { addEndpoint, seedFixtureAccounts } from '../../support/test-accounts.ts';
import { testDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { answer, type Behaviour, eventually, startReceiver } from '../../support/webhook-receiver.ts';
import { startWorkerProcess } from '../../support/worker-process.ts';

const STORM = {
  wabaId: '900000000000101',
  phoneNumberId: '800000000000111',
  displayPhoneNumber: '12025550100',
};
const CALM = { ...STORM, wabaId: '900000000000202', phoneNumberId: '800000000000221' };

const STORM_PER_SECOND = 100;
const ENDPOINTS = 12;
const SECONDS = 15;

/** The schedule's 5 s, a fifth more at most. */
const FIRST_RETRY_MS = 6_000;
const LATE_MS = 10_000;

/** Of the attempts at each endpoint: fewer than the breaker takes for an endpoint that is down. */
function failThreeOfFive(): Behaviour {
  const counts = new Map<string, number>();
  return (webhook, response) => {
    const count = counts.get(webhook.path) ?? 0;
    counts.set(webhook.path, count + 1);
    return answer(count % 5 === 1 || count % 5 === 3 ? 200 : 503)(webhook, response);
  };
}

test('a tenant of whose 100 attempts a second 60 fail delays no retries of another, and leaves it room for workflows', async () => {
  const { database, url } = await testDatabase();
  await seedFixtureAccounts(database);
  const storm = await startReceiver(failThreeOfFive());
  const calm = await startReceiver((webhook, response) =>
    answer(webhook.headers['x-service-attempt'] === '1' ? 503 : 200)(webhook, response),
  );
  onTestFinished(() => storm.close());
  onTestFinished(() => calm.close());
  // Over several endpoints, so that it is the tenant's share that bounds its workflows.
  for (let n = 0; n < ENDPOINTS; n += 1) await addEndpoint(database, STORM.wabaId, `${storm.url}/${n}`);
  await addEndpoint(database, CALM.wabaId, `${calm.url}/hook`);
  const worker = startWorkerProcess(
    testSettings(url, { HELIOGRAPH_WEBHOOK_RETRY_SCHEDULE_SECONDS: '5,60,60,60' }),
  );
  onTestFinished(() => worker.kill());
  await worker.ready();

  for (let second = 0; second < SECONDS; second += 1) {
    const startMs = performance.now();
    const perEndpoint = Math.ceil(STORM_PER_SECOND / ENDPOINTS);
    const items = Array.from({ length: perEndpoint }, (_, n) =>
      textMessage(`wamid.STORM${second}-${n}`, 'x'),
    );
    await insertBodies(database, [
      bodyOf(STORM, items),
      bodyOf(CALM, [textMessage(`wamid.CALM${second}`, 'x')]),
    ]);
    await sleep(Math.max(0, 1_000 - (performance.now() - startMs)));
  }
  await eventually('all of the calm tenant', () => calm.received.length >= 2 * SECONDS, 30_000);

  const byEvent = Map.groupBy(calm.received, ({ headers }) => headers['x-service-event-id']);
  expect([...byEvent.values()].map((attempts) => attempts.length)).toEqual(Array(SECONDS).fill(2));
  const lateMs = [...byEvent.values()].map(
    ([first, second]) => (second?.arrivedMs ?? 0) - (first?.answeredMs ?? 0) - FIRST_RETRY_MS,
  );
  process.stdout.write(`second attempts came ${Math.round(Math.max(...lateMs))} ms late at most\n`);
  expect(Math.max(...lateMs)).toBeLessThan(LATE_MS);

  const carriers = await query(
    database,
    `select 1 from deliveries where waba_id = ? and attempts = 2 and workflow_id like 'delivery/%'`,
    [CALM.wabaId],
  );
  expect(carriers.length).toBeGreaterThan(0);

  const failed = storm.received.filter(({ status }) => status === 503).length;
  expect(failed).toBeGreaterThan(0.4 * STORM_PER_SECOND * SECONDS);
  const open = await query<{ waba: string; n: number }>(
    database,
    `select w.waba_id as waba, count(*)::integer as n from delivery_queue q join webhook_endpoints w on w.id = q.endpoint_id
      where q.state = 'retrying' and q.by_workflow group by 1`,
  );
  const ofStorm = open.find(({ waba }) => waba === STORM.wabaId)?.n ?? 0;
  expect(ofStorm).toBeGreaterThan(0);
  // Half of them; attempts under way, and those that are judged side by side, count late.
  expect(ofStorm).toBeLessThan(130);
}, 120_000);
