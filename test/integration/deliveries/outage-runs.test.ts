import { expect, onTestFinished, test } from 'vitest';
import { enableEndpoint, holdEndpoint } from '../../../src/features/endpoints/endpoint-modes.ts';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import { loadConfig } from '../../../src/platform/config/config.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { taskQueues } from '../../../src/platform/temporal/workflow-options.ts';
import { startWorker } from '../../../src/worker/start-worker.ts';
import { ACCOUNT, bodyOf, textMessage } from '../../support/load/upstream-bodies.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { useTemporal } from '../../support/temporal-client.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { drawIdsApart, seededWorkerDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { answer, eventually, startReceiver } from '../../support/webhook-receiver.ts';

const EVENTS = 200;

/** Fewer than fail before the breaker opens, so the room is full then. */
const ROOM = 8;

/** What fails waits for longer than the test lasts, and so does the next probe: only `retryNow` sends something. */
const SETTINGS = {
  HELIOGRAPH_WEBHOOK_RETRY_SCHEDULE_SECONDS: '3600,3600',
};

/** No traffic is calm: a first attempt that takes long on a busy machine would have a run beside those of failures. */
const RUN_BOUNDS = {
  room: { perEndpoint: ROOM, overall: 200 },
  calm: { note: () => undefined, isCalm: () => false, shareWith: () => undefined },
};

const client = useTemporal();

/** An endpoint that is down, with 200 events. */
async function outage() {
  const { database, url } = await seededWorkerDatabase(20);
  await drawIdsApart(database);
  const receiver = await startReceiver(answer(503));
  onTestFinished(() => receiver.close());
  const { id } = await addEndpoint(database, ACCOUNT.wabaId, `${receiver.url}/hook`);
  const config = loadConfig(testSettings(url, SETTINGS));
  const worker = await startWorker(config, silentLogger, { runBounds: RUN_BOUNDS });
  onTestFinished(() => worker.stop());
  const items = Array.from({ length: EVENTS }, (_, n) => textMessage(`wamid.OUTAGE${n}`, 'x'));
  await insertBodies(database, [bodyOf(ACCOUNT, items)]);

  const { deliveries: taskQueue } = taskQueues(config.temporal.taskQueuePrefix);
  const runsWith = async (status: 'Running' | 'Completed'): Promise<string[]> => {
    const ids: string[] = [];
    const filter = `TaskQueue = '${taskQueue}' and ExecutionStatus = '${status}'`;
    for await (const run of client().workflow.list({ query: filter })) ids.push(run.workflowId);
    return ids.filter((workflowId) => !workflowId.startsWith('delivery-session/')).sort();
  };
  const trouble = client().workflow.getHandle(`endpoint/${id}`);
  const shows = (text: string) =>
    eventually(`its run shows ${text}`, async () => {
      const metadata = trouble.query<{ currentDetails?: string }>('__temporal_workflow_metadata');
      return (await metadata.catch(() => null))?.currentDetails?.includes(text) ?? false;
    });
  const endpoint = async () => {
    const [row] = await query<{ mode: string; failures: number; pending: number }>(
      database,
      `select mode, probe_failures as failures, (select count(*)::integer from delivery_queue) as pending
         from endpoint_health where endpoint_id = :id`,
      { id },
    );
    return row;
  };
  return { database, receiver, id, runsWith, trouble, shows, endpoint };
}

/** Notes the Completed runs of events that were not delivered, all the time; `stop` returns their ids. */
function watchCompleted({ database, runsWith }: Awaited<ReturnType<typeof outage>>) {
  const wrong = new Set<string>();
  const samples = { count: 0 };
  let isOver = false;
  const look = async () => {
    const completed = (await runsWith('Completed')).filter((id) => id.startsWith('delivery/'));
    const delivered = await query<{ id: string }>(
      database,
      `select workflow_id as id from deliveries where workflow_id = any (:completed) and state = 'delivered'`,
      { completed },
    );
    const ids = new Set(delivered.map(({ id }) => id));
    for (const id of completed) if (!ids.has(id)) wrong.add(id);
    samples.count += 1;
  };
  const looking = (async () => {
    while (!isOver) {
      await look();
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  })();
  onTestFinished(() => {
    isOver = true;
    return looking;
  });
  return {
    samples,
    stop: async () => {
      isOver = true;
      await looking;
      await look();
      return [...wrong];
    },
  };
}

test(`${EVENTS} failing events of an endpoint are as many runs as it has room, and its own; none ends before its event is delivered`, async () => {
  const all = await outage();
  const { database, receiver, id, runsWith, trouble, shows, endpoint } = all;
  const completed = watchCompleted(all);
  await shows('**probing** since');
  await shows(`Pending: ${EVENTS}`);

  await eventually('as many runs as there is room', async () => (await runsWith('Running')).length > ROOM);
  const running = await runsWith('Running');
  expect(running).toHaveLength(ROOM + 1);
  expect(running).toContain(`endpoint/${id}`);
  expect(running.filter((workflowId) => workflowId.startsWith(`delivery/${id}/`))).toHaveLength(ROOM);
  const staysAsItWas = async () => expect(await runsWith('Running')).toEqual(running);

  // While it is probed, the update sends the next probe, and nothing else.
  const attempted = receiver.received.length;
  expect(attempted).toBeLessThan(EVENTS);
  const retryNow = () => trouble.executeUpdate<string, [null]>('retryNow', { args: [null] });
  expect(await retryNow()).toMatch(/^\d+ retries are due now, and so is the probe\.$/);
  await eventually('the probe fails', async () => (await endpoint())?.failures, { is: 1 });
  expect(await endpoint()).toEqual({ mode: 'probing', failures: 1, pending: EVENTS });
  expect(receiver.received).toHaveLength(attempted + 1);
  await staysAsItWas();

  await trouble.executeUpdate<string, [string]>('pause', { args: ['server migration'] });
  await shows('**paused** since');
  await staysAsItWas();
  const tools = { database, actor: SYSTEM };
  await holdEndpoint(tools, ACCOUNT.wabaId, { id, mode: 'disabled', reason: '' });
  await shows('**disabled** since');
  await staysAsItWas();
  expect(receiver.received).toHaveLength(attempted + 1);

  receiver.behave(answer(200));
  await enableEndpoint(tools, ACCOUNT.wabaId, { id, waiting: 'send', by: 'a test' });
  await eventually('all are delivered', async () => (await endpoint())?.pending, { is: 0 });
  for (const workflowId of running) await client().workflow.getHandle(workflowId).result();
  expect(completed.samples.count).toBeGreaterThan(5);
  expect(await completed.stop()).toEqual([]);
});
