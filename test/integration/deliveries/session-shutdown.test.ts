import { expect, onTestFinished, test } from 'vitest';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { ACCOUNT, bodyOf, messageStatus } from '../../support/load/upstream-bodies.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { seededDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { eventually, startReceiver } from '../../support/webhook-receiver.ts';
import { startWorkerProcess } from '../../support/worker-process.ts';

const WABA = '900000000000101';

/** A receiver that takes its time, so that attempts are under way whenever the process is told to stop. */
async function startSlowReceiver() {
  const receiver = await startReceiver(async (_webhook, response) => {
    await new Promise((resolve) => setTimeout(resolve, 150));
    response.writeHead(200).end();
    return 200;
  });
  onTestFinished(() => receiver.close());
  return receiver;
}

test('a deploy in the middle of a flood: the old process finishes and releases, the new one goes on; each event once, in order', async () => {
  const { database, url } = await seededDatabase();
  const receiver = await startSlowReceiver();
  await addEndpoint(database, WABA, `${receiver.url}/hook`);
  const settings = testSettings(url);
  const old = startWorkerProcess(settings);
  onTestFinished(() => old.stop());
  await old.ready();
  const steps = ['sent', 'delivered', 'read'];
  const ids = Array.from({ length: 200 }, (_, n) => `wamid.DEPLOY-${n}`);
  await insertBodies(
    database,
    steps.flatMap((step) => ids.map((id) => bodyOf(ACCOUNT, [messageStatus(id, step)]))),
  );
  await eventually('in the middle of it', () => receiver.received.length >= 150);
  await old.stop();
  const claimed = await query(database, `select 1 from delivery_queue where state = 'claimed'`);
  expect(claimed).toEqual([]);
  const before = receiver.received.length;
  expect(before).toBeLessThan(600);

  const next = startWorkerProcess(settings);
  onTestFinished(() => next.stop());
  await next.ready();
  const isEmpty = async () => (await query(database, 'select 1 from delivery_queue limit 1')).length === 0;
  await eventually('the rest', async () => receiver.received.length >= 600 && (await isEmpty()));
  const webhookIds = receiver.received.map(({ headers }) => headers['webhook-id']);
  expect(new Set(webhookIds).size).toBe(600);
  expect(webhookIds).toHaveLength(600);
  const last = new Map<unknown, number>();
  for (const { headers } of receiver.received) {
    const sequence = Number(headers['x-service-sequence']);
    expect(sequence).toBe((last.get(headers['x-service-event-id']) ?? 0) + 1);
    last.set(headers['x-service-event-id'], sequence);
  }
});
