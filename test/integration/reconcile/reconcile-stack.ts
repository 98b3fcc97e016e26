import { randomBytes } from 'node:crypto';
import { NativeConnection, Worker } from '@temporalio/worker';
import { expect, onTestFinished } from 'vitest';
import type { Finding, ReconcileOptions } from '../../../src/ops/reconcile/findings.ts';
import { reconcile } from '../../../src/ops/reconcile/reconcile.ts';
import { OPERATOR_COMMAND } from '../../../src/platform/audit/audit.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { openTemporalConnection } from '../../../src/platform/temporal/client-connection.ts';
import { taskQueues } from '../../../src/platform/temporal/workflow-options.ts';
import { TASK_KINDS } from '../../../src/worker/task-kinds.ts';
import { takeIn } from '../../support/take-in.ts';
import { testSecretBox } from '../../support/test-accounts.ts';
import { eventually } from '../../support/webhook-receiver.ts';
import { type MediaStack, messageBody, startMediaStack, WABA } from '../messages/media/media-stack.ts';

export const JPEG = Buffer.concat([Buffer.from('ffd8ffe000104a464946', 'hex'), randomBytes(2_000)]);

export type ReconcileStack = MediaStack & { temporal: ReturnType<typeof openTemporalConnection> };

/** Media as it comes in, with all that reconcile compares it with. */
export async function startReconcileStack(): Promise<ReconcileStack> {
  const stack = await startMediaStack();
  await stack.objectStore.ensureBucket();
  const temporal = openTemporalConnection(stack.config);
  const stop = async () => {
    await temporal.close();
    await stack.stop();
  };
  return { ...stack, temporal, stop };
}

export const LOOK = { fix: false, removeObjectsAfterMs: null, rewound: false };
export const FIX = { ...LOOK, fix: true };

/** What differs, by kind; kinds without findings are left out. */
export async function differences(
  stack: ReconcileStack,
  options: ReconcileOptions,
): Promise<Record<string, Finding>> {
  const { config, database, objectStore } = stack;
  const tools = {
    config,
    database,
    secretBox: testSecretBox,
    actor: OPERATOR_COMMAND,
    temporal: stack.temporal,
    objectStore,
  };
  const findings = await reconcile({ ...tools, taskKinds: TASK_KINDS, ...options });
  expect(findings.filter(({ problem }) => problem !== null)).toEqual([]);
  return Object.fromEntries(findings.filter(({ found }) => found > 0).map((one) => [one.kind, one]));
}

/** Only this kind is found, a look changes nothing, and after a fix it is gone. */
export async function expectMended(
  stack: ReconcileStack,
  kind: string,
  fix: ReconcileOptions = FIX,
): Promise<Finding> {
  expect(await differences(stack, LOOK)).toMatchObject({ [kind]: { found: 1, fixed: 0, left: 1 } });
  const fixed = await differences(stack, fix);
  expect(Object.keys(fixed), JSON.stringify(fixed)).toEqual([kind]);
  expect(fixed[kind]).toMatchObject({ found: 1, fixed: 1, left: 0 });
  return fixed[kind] as Finding;
}

type Row = { id: string; state: string; objectKey: string; errorCode: string | null };

export async function mediaOf(stack: ReconcileStack, upstreamId: string): Promise<Row> {
  const [row] = await query<Row>(
    stack.database,
    `select m.id, d.state, d.object_key as "objectKey", d.error_code as "errorCode"
       from messages m join media d on d.message_id = m.id where m.upstream_id = :upstreamId`,
    { upstreamId },
  );
  if (row === undefined) throw new Error(`no media of ${upstreamId}`);
  return row;
}

/** A message whose picture is stored. */
export async function storedPicture(stack: ReconcileStack): Promise<{ upstreamId: string; row: Row }> {
  const { id, sha256 } = await stack.upload(JPEG, 'image/jpeg');
  const image = { mime_type: 'image/jpeg', id, sha256 };
  const { body, upstreamId } = messageBody({ type: 'image', image });
  await takeIn(stack.database, body);
  await expectStored(stack, upstreamId);
  return { upstreamId, row: await mediaOf(stack, upstreamId) };
}

export async function expectStored(stack: ReconcileStack, upstreamId: string): Promise<void> {
  await eventually('it is stored', async () => (await mediaOf(stack, upstreamId)).state, { is: 'stored' });
  // The run ends a moment after its row, which reconcile would find in between.
  const { id } = await mediaOf(stack, upstreamId);
  await eventually('its run has ended', async () => await statusOf(stack, `media/${id}`), {
    is: 'COMPLETED',
  });
}

export async function announcements(stack: ReconcileStack, upstreamId: string): Promise<number> {
  const text = 'select 1 from events where event_id = :upstreamId';
  return (await query(stack.database, text, { upstreamId: `${upstreamId}_media` })).length;
}

export async function statusOf(stack: ReconcileStack, workflowId: string): Promise<string> {
  return (await stack.client.workflow.getHandle(workflowId).describe()).status.name;
}

/** Stands in for what a worker did after the moment to which the database was restored. */
export async function carryOut(
  stack: ReconcileStack,
  taskQueue: string,
  activities: Record<string, () => Promise<unknown>>,
): Promise<void> {
  const connection = await NativeConnection.connect({ address: stack.config.temporal.address });
  const worker = await Worker.create({ connection, taskQueue, activities });
  const running = worker.run();
  onTestFinished(async () => {
    worker.shutdown();
    await running;
    await connection.close();
  });
}

export const queues = (stack: ReconcileStack) => taskQueues(stack.config.temporal.taskQueuePrefix);

/** As takeIn makes it, after the starter took it once. */
export async function addTask(
  stack: ReconcileStack,
  workflowId: string,
  workflowType: string,
  argument: object,
  starts = 1,
): Promise<void> {
  await query(
    stack.database,
    `insert into workflow_tasks (workflow_id, workflow_type, waba_id, event_id, argument, starts, next_start_at)
     values (:workflowId, :workflowType, :waba, '', cast(:argument as jsonb), :starts, now() + interval '1 hour')`,
    { workflowId, workflowType, waba: WABA, argument: JSON.stringify(argument), starts },
  );
}
