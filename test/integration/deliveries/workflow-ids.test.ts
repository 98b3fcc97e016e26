import type { Client } from '@temporalio/client';
import { expect, onTestFinished, test } from 'vitest';
import { retryDelivery } from '../../../src/features/endpoints/retry-now.ts';
import { sendTestEvent } from '../../../src/features/endpoints/test-event.ts';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { publicDeliveryId } from '../../../src/platform/public-ids.ts';
import { ACCOUNT, bodyOf, textMessage } from '../../support/load/upstream-bodies.ts';
import { answer, type Behaviour, eventually } from '../../support/webhook-receiver.ts';
import { workerBesideTemporal } from '../../support/worker-beside-temporal.ts';

/** Refuses the first attempt of each event. */
const refuseFirst: Behaviour = (webhook, response) =>
  answer(webhook.headers['x-service-attempt'] === '1' ? 503 : 200)(webhook, response);

const send = (database: Database, id: string) =>
  insertBodies(database, [bodyOf(ACCOUNT, [textMessage(id, 'x')])]);

type Logged = { id: string; state: string; attempts: number; workflowId: string | null };

/** The deliveries of an event in the log, with the workflows that they name. */
const logged = (database: Database, eventId: string) =>
  query<Logged>(
    database,
    `select d.id, d.state, d.attempts, d.workflow_id as "workflowId"
       from deliveries d join events e on e.day = d.event_day and e.id = d.event_uuid
      where e.event_id = :eventId order by d.id`,
    { eventId },
  );

async function untilDelivered(database: Database, eventId: string): Promise<Logged> {
  const only = async () => (await logged(database, eventId))[0];
  await eventually(`${eventId} is delivered`, async () => (await only())?.state, {
    is: 'delivered',
  });
  return (await only()) ?? { id: '', state: '', attempts: 0, workflowId: null };
}

const statusOf = async (client: Client, workflowId: string) =>
  (
    await client.workflow
      .getHandle(workflowId)
      .describe()
      .catch(() => null)
  )?.status.name ?? 'not found';

const OWN = /^delivery\//;

test('a delivery whose run could not be started while Temporal was frozen names no run', async () => {
  const { temporal, database, receiver } = await workerBesideTemporal();
  receiver.behave(refuseFirst);
  await send(database, 'wamid.BEFORE');
  expect((await untilDelivered(database, 'wamid.BEFORE')).workflowId).toMatch(OWN);
  temporal.freeze();
  onTestFinished(() => temporal.thaw());
  for (const id of ['wamid.FROZEN1', 'wamid.FROZEN2']) {
    await send(database, id);
    const { workflowId, attempts } = await untilDelivered(database, id);
    expect(attempts).toBe(2);
    expect(workflowId ?? '').not.toMatch(OWN);
  }
});

test('a delivery that ends after Temporal lost its run is shown by a new one', async () => {
  const { temporal, database, receiver } = await workerBesideTemporal();
  receiver.behave(answer(503, { 'retry-after': '300' }));
  await send(database, 'wamid.LOST');
  const waiting = async () => (await logged(database, 'wamid.LOST'))[0]?.workflowId ?? '';
  await eventually('its run is known', async () => OWN.test(await waiting()), { is: true });
  await temporal.loseData();
  await temporal.start();
  const client = await temporal.connect();
  const sessions = `WorkflowType = 'deliverSession' and ExecutionStatus = 'Running'`;
  await eventually(
    'the worker is back',
    async () => (await client.workflow.count(sessions).catch(() => ({ count: 0 }))).count,
    { is: 1 },
  );
  receiver.behave(answer(200));
  const [{ id = '' } = {}] = await logged(database, 'wamid.LOST');
  await retryDelivery({ database, actor: SYSTEM }, ACCOUNT.wabaId, publicDeliveryId(id));
  const { workflowId } = await untilDelivered(database, 'wamid.LOST');
  await eventually('a run says so', () => statusOf(client, workflowId ?? ''), { is: 'COMPLETED' });
});

test('a test event that went out without its run names none', async () => {
  const { temporal, database, receiver, endpoint } = await workerBesideTemporal();
  await send(database, 'wamid.BEFORE');
  await untilDelivered(database, 'wamid.BEFORE');
  temporal.freeze();
  onTestFinished(() => temporal.thaw());
  const tools = {
    database,
    actor: SYSTEM,
    waitMs: 0,
    startDelivery: async () => await Promise.reject(new Error('Temporal does not respond')),
  };
  const { eventId } = await sendTestEvent(tools, ACCOUNT.wabaId, endpoint.id);
  const { workflowId } = await untilDelivered(database, eventId);
  expect(receiver.received.at(-1)?.headers['x-service-event-id']).toBe(eventId);
  expect(workflowId ?? '').not.toMatch(OWN);
});
