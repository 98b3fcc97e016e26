import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { bodyOf, textMessage } from '../../support/load/upstream-bodies.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { seededDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import {
  answer,
  type Behaviour,
  eventually,
  startReceiver,
  type WebhookReceiver,
} from '../../support/webhook-receiver.ts';
import { startWorkerProcess } from '../../support/worker-process.ts';

const STORM = {
  wabaId: '900000000000101',
  phoneNumberId: '800000000000111',
  displayPhoneNumber: '12025550100',
};
const CALM = { ...STORM, wabaId: '900000000000202', phoneNumberId: '800000000000221' };

const STORM_PER_SECOND = 100;
const ENDPOINTS = 12;

/** The storm goes on until the calm tenant has its run: at least, and at most. */
const SECONDS = 15;
const MOST_SECONDS = 90;

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

/** Refuses attempts 1 and 2 of some events; takes the others, so that its breaker stays closed. */
const failTwice: Behaviour = (webhook, response) => {
  const { headers } = webhook;
  const isRefused =
    isFailing(String(headers['x-service-event-id'])) && Number(headers['x-service-attempt']) < 3;
  return answer(isRefused ? 503 : 200)(webhook, response);
};

const isFailing = (eventId: string) => eventId.startsWith('wamid.FAILS');

/** Bodies of both tenants, every second until `isOver`. */
async function storm(database: Database, isOver: (second: number) => Promise<boolean>): Promise<number> {
  let second = 0;
  for (; !(await isOver(second)); second += 1) {
    const startMs = performance.now();
    const perEndpoint = Math.ceil(STORM_PER_SECOND / ENDPOINTS);
    const items = Array.from({ length: perEndpoint }, (_, n) =>
      textMessage(`wamid.STORM${second}-${n}`, 'x'),
    );
    const calm = [`wamid.FAILS${second}`, `wamid.FINE${second}`].map((id) => textMessage(id, 'x'));
    await insertBodies(database, [bodyOf(STORM, items), bodyOf(CALM, calm)]);
    await sleep(Math.max(0, 1_000 - (performance.now() - startMs)));
  }
  return second;
}

/**
 * Whether a delivery of the calm tenant that failed again was given a run of its own. The first second does not count:
 * a first attempt before the storm is felt may have its run because traffic is calm.
 */
async function hasOwnRun(database: Database): Promise<boolean> {
  const shown = await query(
    database,
    `select 1 from deliveries d join events ev on ev.day = d.event_day and ev.id = d.event_uuid
      where d.waba_id = :wabaId and d.attempts >= 2 and d.workflow_id like 'delivery/%' and ev.event_id <> 'wamid.FAILS0' limit 1`,
    { wabaId: CALM.wabaId },
  );
  return shown.length > 0;
}

/** The attempts at each event of the calm tenant, by its eventId, in the order of their arrival. */
function attemptsOf({ received }: WebhookReceiver) {
  return Map.groupBy(received, ({ headers }) => String(headers['x-service-event-id']));
}

test('a tenant of whose 100 attempts a second 60 fail delays no retries of another, and what fails again there has its run', async () => {
  const { database, url } = await seededDatabase();
  const bad = await startReceiver(failThreeOfFive());
  const calm = await startReceiver(failTwice);
  onTestFinished(() => bad.close());
  onTestFinished(() => calm.close());
  // Over several endpoints, so that it is the tenant's share that bounds its workflows.
  for (let n = 0; n < ENDPOINTS; n += 1) await addEndpoint(database, STORM.wabaId, `${bad.url}/${n}`);
  await addEndpoint(database, CALM.wabaId, `${calm.url}/hook`);
  const worker = startWorkerProcess(
    testSettings(url, { HELIOGRAPH_WEBHOOK_RETRY_SCHEDULE_SECONDS: '5,60,60,60' }),
  );
  onTestFinished(() => worker.kill());
  await worker.ready();

  const seconds = await storm(database, async (second) => {
    if (second >= MOST_SECONDS) throw new Error(`no run for what failed again in ${second} s of the storm`);
    return second >= SECONDS && (await hasOwnRun(database));
  });
  const failing = () => [...attemptsOf(calm)].filter(([eventId]) => isFailing(eventId));
  const isRetried = () =>
    failing().length === seconds && failing().every(([, attempts]) => attempts.length >= 2);
  await eventually('the second attempts of the calm tenant', isRetried);
  expect(attemptsOf(calm).size).toBe(2 * seconds);
  for (const [eventId, attempts] of attemptsOf(calm)) {
    const numbers = attempts.map(({ headers }) => Number(headers['x-service-attempt']));
    expect(numbers, eventId).toEqual(isFailing(eventId) ? [1, 2, 3].slice(0, numbers.length) : [1]);
  }
  const lateMs = Math.max(
    ...failing().map(
      ([, [first, second]]) => (second?.arrivedMs ?? 0) - (first?.answeredMs ?? 0) - FIRST_RETRY_MS,
    ),
  );
  process.stdout.write(`storm of ${seconds} s: second attempts came ${Math.round(lateMs)} ms late at most\n`);
  expect(lateMs).toBeLessThan(LATE_MS);

  const failed = bad.received.filter(({ status }) => status === 503).length;
  expect(failed).toBeGreaterThan(0.4 * STORM_PER_SECOND * SECONDS);
  const [open] = await query<{ n: number }>(
    database,
    `select count(*)::integer as n from delivery_queue q join webhook_endpoints w on w.id = q.endpoint_id
      where q.run = 'room' and w.waba_id = :wabaId`,
    { wabaId: STORM.wabaId },
  );
  expect(open?.n).toBeGreaterThan(0);
  // Half of them; attempts under way, and those that are judged side by side, count late.
  expect(open?.n).toBeLessThan(130);
});
