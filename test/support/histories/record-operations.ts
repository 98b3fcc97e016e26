import { dropWaiting } from '../../../src/engine/queue/remove.ts';
import { startReplay } from '../../../src/features/replays/replays.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { publish, settleLive } from '../../integration/replays/replay-fixtures.ts';
import { addEndpoint } from '../test-accounts.ts';
import { eventually } from '../webhook-receiver.ts';
import { ended, type Recorded, started, waitsForRetry } from './record-deliveries.ts';
import { type RecordingStack, WABA } from './recording-stack.ts';

/** By more than a page above what a replay may have open at one endpoint, so that it waits for one that takes nothing. */
const MORE_THAN_FIT = 6_000;

const DROPPED = 'dropped by the recorder';

/** Runs of `replayDeliveries`. */
export async function recordOperations(stack: RecordingStack): Promise<Recorded> {
  const { database, receiver } = stack;
  const { id: endpointId } = await addEndpoint(database, WABA, `${receiver.url}/hook`);
  const setMode = (mode: string) => execute(database, 'update endpoint_health set mode = :mode', { mode });
  await setMode('disabled');
  await publish(database, WABA, { count: 30, keys: 10 });
  await settleLive(database, 'failed');
  const done = await finishedReplay(stack);
  await dropWaiting(database, endpointId, { reason: DROPPED });
  await execute(database, `update deliveries set state = 'dropped'`);
  await publish(database, WABA, { count: MORE_THAN_FIT, keys: 100 });
  await settleLive(database, 'failed');
  const cancelled = await cancelledReplay(stack);
  const paused = await pausedReplay(stack, endpointId);
  return {
    'replay-deliveries-done': done,
    'replay-deliveries-cancelled': cancelled,
    'replay-deliveries-paused-and-resumed': paused,
  };
}

async function startedReplay({ database }: RecordingStack): Promise<string> {
  const { replayId } = await startReplay(
    { database, actor: SYSTEM },
    WABA,
    { states: ['failed'] },
    'recorder',
  );
  return `replay/${replayId}`;
}

async function finishedReplay(stack: RecordingStack): Promise<string> {
  const workflowId = await startedReplay(stack);
  await started(stack, workflowId);
  await ended(stack, workflowId);
  return workflowId;
}

async function cancelledReplay(stack: RecordingStack): Promise<string> {
  const workflowId = await startedReplay(stack);
  await waitsForRetry(stack, workflowId);
  await stack.client.workflow.getHandle(workflowId).cancel();
  await ended(stack, workflowId);
  return workflowId;
}

async function pausedReplay(stack: RecordingStack, endpointId: string): Promise<string> {
  const { database, client } = stack;
  const workflowId = await startedReplay(stack);
  await waitsForRetry(stack, workflowId);
  const handle = client.workflow.getHandle(workflowId);
  const reached = (state: string) =>
    eventually(`the replay is ${state}`, async () => {
      const progress = (await handle.query('progress')) as { state: string } | null;
      return progress?.state === state;
    });
  await handle.signal('pause');
  await reached('paused');
  await waitsForRetry(stack, workflowId);
  await handle.signal('resume');
  await eventually('it goes on', async () => {
    const [replay] = await query<{ state: string }>(
      database,
      'select state from replays where id = :length',
      { length: workflowId.slice('replay/'.length) },
    );
    return replay?.state === 'running';
  });
  await eventually('all queued', async () => {
    await dropWaiting(database, endpointId, { reason: DROPPED });
    return (await handle.describe()).status.name !== 'RUNNING';
  });
  return workflowId;
}
