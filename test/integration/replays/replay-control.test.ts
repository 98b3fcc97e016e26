import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { replayOf, startReplay, switchReplay } from '../../../src/features/replays/replays.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { runAdmin } from '../../support/admin-cli.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { eventually } from '../../support/webhook-receiver.ts';
import { type OperationsStack, startOperationsStack, WABA } from '../endpoints/operations-stack.ts';
import { deliverReplays, publish, queuedStates, settleLive } from './replay-fixtures.ts';

let stack: OperationsStack;

async function startWith(options: Parameters<typeof startOperationsStack>[0]) {
  stack = await startOperationsStack(options);
  await addEndpoint(stack.database, WABA, 'https://shop.example/hook');
  await publish(stack.database, WABA, { count: 1_500, keys: 300 });
  await settleLive(stack.database, 'failed');
}

beforeEach(() => startWith({ maxOpenPerEndpoint: 500 }));
afterEach(() => stack?.stop());

const tools = () => ({ database: stack.database, actor: SYSTEM });
const view = (replayId: string) => replayOf(tools(), WABA, replayId);
const start = async () => (await startReplay(tools(), WABA, { states: ['failed'] }, 'test')).replayId;
const reached = (replayId: string, state: string) =>
  eventually(`replay is ${state}`, async () => (await view(replayId)).state === state);
const queuedUpTo = (replayId: string, queued: number) =>
  eventually(`${queued} queued`, async () => (await view(replayId)).queued >= queued);

describe('pause, resume and cancel', () => {
  test('while it is paused by a command nothing of it can be claimed; resumed, everything goes out in order', async () => {
    const { database } = stack;
    const replayId = await start();
    await queuedUpTo(replayId, 500);
    const paused = await switchReplay(tools(), WABA, replayId, 'pause');
    expect(paused.state).toBe('paused');
    await eventually('nothing is due', async () => !('due' in (await queuedStates(database))));
    expect(await deliverReplays(database)).toEqual([]);
    const { queued } = await view(replayId);
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect((await view(replayId)).queued).toBe(queued);
    await switchReplay(tools(), WABA, replayId, 'resume');
    const last = new Map<string, number>();
    let delivered = 0;
    await eventually('all delivered', async () => {
      for (const { lane, sequence } of await deliverReplays(database)) {
        expect(sequence).toBe((last.get(lane) ?? 0) + 1);
        last.set(lane, sequence);
        delivered += 1;
      }
      return delivered === 1_500;
    });
    await reached(replayId, 'done');
  });

  test('the signals of the workflow set the same row, and its query tells the progress', async () => {
    const replayId = await start();
    await queuedUpTo(replayId, 500);
    const handle = stack.client.workflow.getHandle(`replay/${replayId}`);
    await handle.signal('pause');
    await reached(replayId, 'paused');
    await eventually('the workflow knows', async () => {
      const progress = (await handle.query('progress')) as { state: string; total: number } | null;
      return progress?.state === 'paused' && progress.total === 1_500;
    });
    await handle.signal('resume');
    await reached(replayId, 'running');
    let delivered = 0;
    await eventually('all delivered', async () => {
      delivered += (await deliverReplays(stack.database)).length;
      return delivered === 1_500;
    });
    await reached(replayId, 'done');
    expect(await handle.result()).toMatch(/^done; 1500 of 1500 queued, 0 skipped/);
  });

  test('cancelling the workflow drops what waits, lets an attempt under way end, and drops its retry too', async () => {
    const { database } = stack;
    const replayId = await start();
    await queuedUpTo(replayId, 500);
    const delivered = await deliverReplays(database, 20);
    const [claimed] = await query<{ id: string }>(
      database,
      `update delivery_queue set state = 'claimed', lease_until = now() + interval '1 minute'
        where position = (select min(position) from delivery_queue where replay and state = 'due')
       returning delivery_id as id`,
    );
    const handle = stack.client.workflow.getHandle(`replay/${replayId}`);
    await handle.cancel();
    await reached(replayId, 'cancelled');
    await eventually('only the attempt is left', async () => {
      const left = await queuedStates(database);
      return Object.keys(left).join() === 'claimed' && left.claimed === 1;
    });
    await execute(
      database,
      `update delivery_queue set state = 'retrying', next_attempt_at = now() where delivery_id = :id`,
      { id: claimed?.id ?? '' },
    );
    expect(await handle.result()).toMatch(/^cancelled;/);
    const { outcomes, queued, state } = await view(replayId);
    expect(state).toBe('cancelled');
    expect(await queuedStates(database)).toEqual({});
    expect(outcomes).toEqual({
      delivered: delivered.length,
      dropped: queued - delivered.length,
      failed: 0,
      pending: 0,
    });
    expect(await query(database, 'select 1 from workflow_tasks')).toEqual([]);
    await expect(switchReplay(tools(), WABA, replayId, 'resume')).rejects.toMatchObject({
      code: 'replay_finished',
    });
  });

  test('a replay that has queued everything can still be paused and cancelled, until nothing of it is open', async () => {
    const { database } = stack;
    const [row] = await query<{ id: string }>(database, 'select id from deliveries order by id limit 1');
    const deliveryIds = [`dlv_${row?.id.replaceAll('-', '')}`];
    const { replayId } = await startReplay(tools(), WABA, { deliveryIds }, 'test');
    await reached(replayId, 'done');
    await switchReplay(tools(), WABA, replayId, 'pause');
    expect(await queuedStates(database)).toEqual({ suspended: 1 });
    await switchReplay(tools(), WABA, replayId, 'resume');
    await reached(replayId, 'done');
    expect(await queuedStates(database)).toEqual({ due: 1 });
    expect(await switchReplay(tools(), WABA, replayId, 'cancel')).toMatchObject({ outcomes: { dropped: 1 } });
    await eventually(
      'its task ends',
      async () => (await query(database, 'select 1 from workflow_tasks')).length === 0,
    );
    const over = (await startReplay(tools(), WABA, { deliveryIds }, 'test')).replayId;
    await reached(over, 'done');
    expect(await deliverReplays(database)).toHaveLength(1);
    await expect(switchReplay(tools(), WABA, over, 'cancel')).rejects.toMatchObject({
      code: 'replay_finished',
    });
  });
});

describe('a replay outlives what drives it', () => {
  test('a worker that goes away in the middle: another one goes on, and nothing is queued twice', async () => {
    await stack.stop();
    await startWith({ maxOpenPerEndpoint: 500, withWorker: false });
    const { database } = stack;
    const first = await stack.startWorker();
    const replayId = await start();
    await queuedUpTo(replayId, 500);
    await first.stop();
    await stack.client.workflow.getHandle(`replay/${replayId}`).terminate('test');
    await execute(database, 'update workflow_tasks set next_start_at = now()');
    await stack.startWorker();
    let delivered = 0;
    await eventually('all delivered', async () => {
      delivered += (await deliverReplays(database)).length;
      return (
        (await view(replayId)).state === 'done' && Object.keys(await queuedStates(database)).length === 0
      );
    });
    expect(delivered).toBe(1_500);
    const [row] = await query<{ n: number }>(
      database,
      'select count(distinct replay_of)::integer as n from deliveries where replay_id = :replayId',
      { replayId },
    );
    expect(row?.n).toBe(1_500);
  });
});

describe('admin replay', () => {
  test('counts, starts, shows, lists, pauses and cancels', async () => {
    const json = async (...args: string[]) => {
      const run = await runAdmin(stack.settings, ['replay', ...args, '--json']);
      if (run.exitCode !== 0) throw new Error(`${run.stdout}${run.stderr}`);
      return JSON.parse(run.stdout);
    };
    const select = ['start', '--waba', WABA, '--states', 'failed', '--from', '2020-01-01T00:00:00Z'];
    expect(await json(...select, '--dry-run')).toMatchObject({ deliveries: 1_500, skipped: { pending: 0 } });
    expect(await query(stack.database, 'select 1 from replays')).toEqual([]);
    const { replayId, workflowUrl } = await json(...select);
    expect(workflowUrl).toContain(encodeURIComponent(`replay/${replayId}`));
    expect(await json('pause', replayId)).toMatchObject({ replayId, state: 'paused' });
    expect(await json('list', '--waba', WABA)).toMatchObject([
      { replayId, total: 1_500, requestedBy: 'operator' },
    ]);
    expect(await json('cancel', replayId)).toMatchObject({ state: 'cancelled' });
    const shown = await runAdmin(stack.settings, ['replay', 'show', replayId]);
    expect(shown.stdout).toMatch(/state +cancelled/);
    const wrong = await runAdmin(stack.settings, ['replay', 'start', '--waba', WABA, '--states', 'pending']);
    expect(wrong).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('known are delivered, failed, dropped'),
    });
    expect(await runAdmin(stack.settings, ['replay', 'show', '999'])).toMatchObject({ exitCode: 1 });
  });
});
