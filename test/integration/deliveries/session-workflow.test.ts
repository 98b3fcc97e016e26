import { hostname } from 'node:os';
import { Client, Connection } from '@temporalio/client';
import { expect, inject, onTestFinished, test } from 'vitest';
import { testDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { eventually } from '../../support/webhook-receiver.ts';
import { startWorkerProcess } from '../../support/worker-process.ts';

/** Worker processes of one installation, each with the workflow that shows its loop. */
async function startShownWorkers(count: number) {
  const { url } = await testDatabase();
  const connection = await Connection.connect({ address: inject('infrastructure').temporalAddress });
  onTestFinished(() => connection.close());
  const client = new Client({ connection });
  const settings = testSettings(url, { HELIOGRAPH_WORKER_HEALTH_PORT: '0' });
  return await Promise.all(Array.from({ length: count }, () => startShownWorker(client, settings)));
}

async function startShownWorker(client: Client, settings: Record<string, string>) {
  const worker = startWorkerProcess(settings);
  onTestFinished(() => worker.kill());
  await worker.ready();
  const workflowId = `delivery-session/${hostname()}:${worker.child.pid}`;
  const handle = (runId: string) => client.workflow.getHandle(workflowId, runId);
  /** The run whose activity is under way, other than `before`. */
  const shownBy = async (before: string | null = null): Promise<string> => {
    let runId = '';
    await eventually('the loop is shown', async () => {
      const run = await client.workflow
        .getHandle(workflowId)
        .describe()
        .catch(() => null);
      runId = run?.runId ?? '';
      const activities = run?.raw.pendingActivities ?? [];
      const isUnderWay = activities.some(({ lastStartedTime }) => lastStartedTime != null);
      return run?.status.name === 'RUNNING' && isUnderWay && runId !== before;
    });
    return runId;
  };
  return { worker, shownBy, handle };
}

test('a loop that is no longer shown, because its workflow was cancelled or terminated, is shown again', async () => {
  const [shown] = await startShownWorkers(1);
  if (shown === undefined) throw new Error('no worker');
  const { shownBy, handle } = shown;
  const first = await shownBy();
  await handle(first).cancel();
  const second = await shownBy(first);
  expect((await handle(first).describe()).status.name).toBe('CANCELLED');
  await handle(second).terminate();
  await shownBy(second);
});

test('the workflow of a process that stops ends with it, that of one that was killed a while later, that of another goes on', async () => {
  const [stopped, killed, other] = await startShownWorkers(3);
  if (stopped === undefined || killed === undefined || other === undefined) throw new Error('no workers');
  const [ofStopped, ofKilled, ofOther] = await Promise.all([
    stopped.shownBy(),
    killed.shownBy(),
    other.shownBy(),
  ]);
  await killed.worker.kill();
  await stopped.worker.stop();
  expect(await stopped.handle(ofStopped).result()).toMatch(/^Claimed \d+, delivered \d+/);
  expect(await killed.handle(ofKilled).result()).toMatch(/^The worker process is gone/);
  expect((await other.handle(ofOther).describe()).status.name).toBe('RUNNING');
});
