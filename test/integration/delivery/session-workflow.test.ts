import { Client, Connection } from '@temporalio/client';
import { expect, inject, onTestFinished, test } from 'vitest';
import { query } from '../../../src/database/sql.ts';
import { testDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { eventually } from '../../support/webhook-receiver.ts';
import { startWorkerProcess } from '../../support/worker-process.ts';

/** A worker process, and the workflow that shows its loop. */
async function shownWorker() {
  const { database, url } = await testDatabase();
  const connection = await Connection.connect({ address: inject('infrastructure').temporalAddress });
  onTestFinished(() => connection.close());
  const client = new Client({ connection });
  const worker = startWorkerProcess(testSettings(url));
  onTestFinished(() => worker.kill());
  await worker.ready();
  const known = () => query<{ id: string }>(database, 'select id from worker_processes');
  await eventually('the process is known', async () => (await known()).length === 1);
  const [{ id } = { id: '' }] = await known();
  const workflowId = `delivery-session/${id}`;
  /** The run whose activity is under way, other than `before`. */
  const shownBy = async (before: string | null = null): Promise<string> => {
    let runId = '';
    await eventually('the loop is shown', async () => {
      const run = await client.workflow
        .getHandle(workflowId)
        .describe()
        .catch(() => null);
      runId = run?.runId ?? '';
      const isStarted = (run?.raw.pendingActivities ?? []).some(
        ({ lastStartedTime }) => lastStartedTime != null,
      );
      return run?.status.name === 'RUNNING' && isStarted && runId !== before;
    });
    return runId;
  };
  const handle = (runId: string) => client.workflow.getHandle(workflowId, runId);
  return { worker, shownBy, handle };
}

test('a loop that is no longer shown, because its workflow was cancelled or terminated, is shown again', async () => {
  const { shownBy, handle } = await shownWorker();
  const first = await shownBy();
  await handle(first).cancel();
  const second = await shownBy(first);
  expect((await handle(first).describe()).status.name).toBe('CANCELLED');
  await handle(second).terminate();
  await shownBy(second);
}, 90_000);

test('the workflow of a process that stops ends with it, that of one that was killed within a minute', async () => {
  const { worker, shownBy, handle } = await shownWorker();
  const first = await shownBy();
  await worker.stop();
  expect(await handle(first).result()).toMatch(/^Claimed \d+, delivered \d+/);
  const other = await shownWorker();
  const killed = await other.shownBy();
  await other.worker.kill();
  const startMs = performance.now();
  expect(await other.handle(killed).result()).toMatch(/^The worker process is gone/);
  expect(performance.now() - startMs).toBeLessThan(60_000);
}, 150_000);
