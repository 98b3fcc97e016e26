import { randomBytes } from 'node:crypto';
import type { Client } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import { expect, onTestFinished, test } from 'vitest';
import { findFreePorts } from '../../../dev/embedded/ports.ts';
import type { Logger } from '../../../src/platform/logger.ts';
import { taskQueues } from '../../../src/platform/temporal/workflow-options.ts';
import { runTemporalWorkers } from '../../../src/worker/temporal-workers.ts';
import { samplesOf } from '../../support/metrics-text.ts';
import { makeOwnTemporal } from '../../support/own-temporal.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { testDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { eventually } from '../../support/webhook-receiver.ts';
import { startWorkerProcess } from '../../support/worker-process.ts';

const PREFIX = 'deaf';
const { session: _, ...QUEUES } = taskQueues(PREFIX);
const ACTIVITIES = 2;

async function ownNamespace(client: Client) {
  const namespace = `deaf-${randomBytes(4).toString('hex')}`;
  const { config } = await client.workflowService.describeNamespace({ namespace: 'default' });
  const workflowExecutionRetentionPeriod = config?.workflowExecutionRetentionTtl ?? null;
  const register = () =>
    client.workflowService.registerNamespace({ namespace, workflowExecutionRetentionPeriod });
  await register();
  return { namespace, register };
}

/** A worker process with a Temporal server and a namespace of its own. */
async function installation() {
  const temporal = await makeOwnTemporal();
  await temporal.start();
  const { url } = await testDatabase();
  const client = await temporal.connect();
  const { namespace } = await ownNamespace(client);
  const [port = 0] = await findFreePorts(1);
  const worker = startWorkerProcess(
    testSettings(url, {
      HELIOGRAPH_TEMPORAL_ADDRESS: temporal.address,
      HELIOGRAPH_TEMPORAL_NAMESPACE: namespace,
      HELIOGRAPH_TEMPORAL_TASK_QUEUE_PREFIX: PREFIX,
      HELIOGRAPH_WORKER_HEALTH_PORT: String(port),
    }),
  );
  onTestFinished(() => worker.kill());
  await worker.ready();
  const ask = async (path: string) => await fetch(`http://127.0.0.1:${port}${path}`);
  return { temporal, client, namespace, worker, ask };
}

async function polledQueues(client: Client, namespace: string): Promise<string[]> {
  const polled = await Promise.all(
    Object.entries(QUEUES).map(async ([name, queue]) => {
      const task = { namespace, taskQueue: { name: queue }, taskQueueType: ACTIVITIES };
      const { pollers } = await client.workflowService.describeTaskQueue(task).catch(() => ({ pollers: [] }));
      return (pollers?.length ?? 0) > 0 ? [name] : [];
    }),
  );
  return polled.flat();
}

async function statusOf(ask: (path: string) => Promise<Response>): Promise<string> {
  const { status } = (await (await ask('/readyz')).json()) as { status: string };
  return status;
}

test('workers that end and hang because their namespace is gone for minutes are made anew on every queue', async () => {
  const temporal = await makeOwnTemporal();
  await temporal.start();
  const client = await temporal.connect();
  const { namespace, register } = await ownNamespace(client);
  const connect = async () => await NativeConnection.connect({ address: temporal.address });
  const connection = await connect();
  // What hangs keeps its connection.
  onTestFinished(() => connection.close().catch(() => undefined));
  const entries = Object.values(QUEUES).map((taskQueue) => ({
    namespace,
    taskQueue,
    activities: { nothing: async () => undefined },
  }));
  const logged: string[] = [];
  const warn = (_facts: unknown, message: string) => void logged.push(message);
  const logger = { ...silentLogger, warn } as unknown as Logger;
  const ensure = async () => undefined;
  const workers = await runTemporalWorkers(entries, { connection, connect, logger, ensure, graceMs: 1_000 });
  onTestFinished(() => workers.stop());
  await eventually('polled', async () => (await polledQueues(client, namespace)).length === entries.length);
  expect(workers.deafMs().size).toBe(0);
  // A server without the namespace, and not one that deletes it: polls that wait there would last for a minute more.
  await temporal.loseData();
  await temporal.start();
  await eventually('all workers ended', () => workers.deafMs().size === entries.length);
  await register();
  await eventually(
    'every queue is polled',
    async () => (await polledQueues(client, namespace)).length === entries.length,
  );
  await eventually('and it is known', () => workers.deafMs().size, { is: 0 });
  process.stdout.write(`hung: ${logged.filter((line) => line.includes('hangs')).length}\n`);
}, 360_000);

test('a worker whose Temporal comes back without data makes its namespace anew and polls every queue, without traffic', async () => {
  const { temporal, client, namespace, worker, ask } = await installation();
  expect((await ask('/readyz')).status).toBe(200);
  await temporal.loseData();
  await temporal.start();
  await eventually(
    'every queue is polled',
    async () => (await polledQueues(client, namespace)).length === Object.keys(QUEUES).length,
  );
  await eventually('ready again', () => statusOf(ask), { is: 'ready' });
  const lines = worker.output().trim().split('\n');
  expect(lines.filter((line) => !line.startsWith('{'))).toEqual([]);
});

test('with Temporal away a worker stays ready and alive, says what waits, and is well when it is back', async () => {
  const { temporal, ask } = await installation();
  const metric = async (name: string) => samplesOf(await (await ask('/metrics')).text()).get(name);
  expect(await metric('heliograph_temporal_up')).toBe(1);
  await temporal.stop();
  await eventually('degraded', () => statusOf(ask), { is: 'degraded' });
  const readyz = await ask('/readyz');
  expect([readyz.status, (await ask('/healthz')).status]).toEqual([200, 200]);
  expect(await readyz.json()).toMatchObject({
    checks: { temporal: 'failed', loops: 'ok', listener: 'ok', schema: 'ok', pollers: 'ok' },
    warnings: [
      expect.stringMatching(/^Temporal has not answered for \d+ s: deliveries and their retries go on/),
    ],
  });
  expect(await metric('heliograph_temporal_up')).toBe(0);
  await temporal.start();
  await eventually('ready', () => statusOf(ask), { is: 'ready' });
});
