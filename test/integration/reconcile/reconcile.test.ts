import { randomBytes, randomUUID } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import { NativeConnection, Worker } from '@temporalio/worker';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { reconcileCommand } from '../../../src/ops/reconcile/commands/reconcile-command.ts';
import type { Finding, ReconcileOptions } from '../../../src/ops/reconcile/findings.ts';
import { reconcile } from '../../../src/ops/reconcile/reconcile.ts';
import { OPERATOR_COMMAND } from '../../../src/platform/audit/audit.ts';
import { changePartition } from '../../../src/platform/postgres/partitions.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { openTemporalConnection } from '../../../src/platform/temporal/client-connection.ts';
import { taskQueues } from '../../../src/platform/temporal/workflow-options.ts';
import { TASK_KINDS } from '../../../src/worker/task-kinds.ts';
import { runHere } from '../../support/admin-cli.ts';
import { takeIn } from '../../support/take-in.ts';
import { testSecretBox } from '../../support/test-accounts.ts';
import { testSettings } from '../../support/test-settings.ts';
import { eventually } from '../../support/webhook-receiver.ts';
import { type MediaStack, messageBody, startMediaStack, WABA } from '../messages/media/media-stack.ts';

const JPEG = Buffer.concat([Buffer.from('ffd8ffe000104a464946', 'hex'), randomBytes(2_000)]);
const HOUR_MS = 3_600_000;

let stack: MediaStack;
let temporal: ReturnType<typeof openTemporalConnection>;

beforeAll(async () => {
  stack = await startMediaStack();
  temporal = openTemporalConnection(stack.config);
  await stack.objectStore.ensureBucket();
});
afterAll(async () => {
  await temporal?.close();
  await stack?.stop();
});

const LOOK = { fix: false, removeObjectsAfterMs: null, rewound: false };
const FIX = { ...LOOK, fix: true };

/** What differs, by kind; kinds without findings are left out. */
async function differences(options: ReconcileOptions): Promise<Record<string, Finding>> {
  const { config, database, objectStore } = stack;
  const tools = {
    config,
    database,
    secretBox: testSecretBox,
    actor: OPERATOR_COMMAND,
    temporal,
    objectStore,
  };
  const findings = await reconcile({ ...tools, taskKinds: TASK_KINDS, ...options });
  expect(findings.filter(({ problem }) => problem !== null)).toEqual([]);
  return Object.fromEntries(findings.filter(({ found }) => found > 0).map((one) => [one.kind, one]));
}

/** Only this kind is found, a look changes nothing, and after a fix it is gone. */
async function expectMended(kind: string, fix: ReconcileOptions = FIX): Promise<Finding> {
  expect(await differences(LOOK)).toMatchObject({ [kind]: { found: 1, fixed: 0, left: 1 } });
  const fixed = await differences(fix);
  expect(Object.keys(fixed), JSON.stringify(fixed)).toEqual([kind]);
  expect(fixed[kind]).toMatchObject({ found: 1, fixed: 1, left: 0 });
  return fixed[kind] as Finding;
}

type Row = { id: string; state: string; objectKey: string; errorCode: string | null };

async function mediaOf(upstreamId: string): Promise<Row> {
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
async function storedPicture(): Promise<{ upstreamId: string; row: Row }> {
  const { id, sha256 } = await stack.upload(JPEG, 'image/jpeg');
  const image = { mime_type: 'image/jpeg', id, sha256 };
  const { body, upstreamId } = messageBody({ type: 'image', image });
  await takeIn(stack.database, body);
  await expectStored(upstreamId);
  return { upstreamId, row: await mediaOf(upstreamId) };
}

async function expectStored(upstreamId: string): Promise<void> {
  await eventually('it is stored', async () => (await mediaOf(upstreamId)).state, { is: 'stored' });
  // The run ends a moment after its row, which reconcile would find in between.
  const { id } = await mediaOf(upstreamId);
  await eventually('its run has ended', async () => await statusOf(`media/${id}`), { is: 'COMPLETED' });
}

async function announcements(upstreamId: string): Promise<number> {
  const text = 'select 1 from events where event_id = :upstreamId';
  return (await query(stack.database, text, { upstreamId: `${upstreamId}_media` })).length;
}

async function statusOf(workflowId: string): Promise<string> {
  return (await stack.client.workflow.getHandle(workflowId).describe()).status.name;
}

/** Stands in for what a worker did after the moment to which the database was restored. */
async function carryOut(
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

const queues = () => taskQueues(stack.config.temporal.taskQueuePrefix);

describe('files', () => {
  test('a stored file whose object is gone is fetched again under its address, and not announced twice', async () => {
    const { upstreamId, row } = await storedPicture();
    expect(await differences(LOOK)).toEqual({});
    await stack.objectStore.remove(row.objectKey);
    await expectMended('media_without_object');
    await expectStored(upstreamId);
    expect(await mediaOf(upstreamId)).toEqual(row);
    expect((await buffer(await stack.objectStore.getRange(row.objectKey))).equals(JPEG)).toBe(true);
    expect(await announcements(upstreamId)).toBe(1);
    expect(await differences(LOOK)).toEqual({});
  });

  test('one of another length counts as gone', async () => {
    const { upstreamId, row } = await storedPicture();
    await stack.objectStore.put(row.objectKey, cut(JPEG), { contentType: 'application/octet-stream' });
    await expectMended('media_without_object');
    await expectStored(upstreamId);
    expect((await buffer(await stack.objectStore.getRange(row.objectKey))).equals(JPEG)).toBe(true);
  });

  test('one that upstream no longer has ends as lost, so that nobody asks for it in vain', async () => {
    const { upstreamId, row } = await storedPicture();
    await stack.objectStore.remove(row.objectKey);
    const age = `update media set created_at = now() - interval '31 days' where message_id = :id`;
    await query(stack.database, age, { id: row.id });
    await expectMended('media_without_object');
    expect(await mediaOf(upstreamId)).toMatchObject({
      state: 'failed',
      errorCode: 'media_lost',
      objectKey: null,
    });
    expect(await differences(LOOK)).toEqual({});
  });

  test('an upload whose object is gone is given up', async () => {
    const id = randomUUID();
    await query(
      stack.database,
      `insert into media_uploads (id, waba_id, state, object_key, size_bytes, expires_at)
       values (:id, :waba, 'ready', :id2, 10, now() + interval '1 day')`,
      { id, waba: WABA, id2: `uploads/${id}` },
    );
    await expectMended('upload_without_object');
    const rows = await query(stack.database, 'select state from media_uploads where id = :id', { id });
    expect(rows).toEqual([{ state: 'deleted' }]);
  });

  test('an object that no row names stays, until an age is given that it has', async () => {
    const key = `left-${randomBytes(8).toString('hex')}`;
    await stack.objectStore.put(key, cut(JPEG), { contentType: 'image/jpeg' });
    const left = { object_without_row: { found: 1, fixed: 0, left: 1 } };
    expect(await differences(FIX)).toMatchObject(left);
    expect(await differences({ ...FIX, removeObjectsAfterMs: HOUR_MS })).toMatchObject(left);
    expect(await differences({ ...LOOK, removeObjectsAfterMs: 0 })).toMatchObject(left);
    expect((await differences(FIX)).object_without_row?.examples.join()).not.toContain(key);
    await expectMended('object_without_row', { ...FIX, removeObjectsAfterMs: 0 });
    await expect(stack.objectStore.stat(key)).rejects.toThrow(/no object/);
  });

  test('an object of a file that was erased goes', async () => {
    const key = `erased-${randomBytes(8).toString('hex')}`;
    await stack.objectStore.put(key, cut(JPEG), { contentType: 'image/jpeg' });
    await query(stack.database, 'insert into erased_files (message_id, object_key) values (:value, :key)', {
      value: 1,
      key,
    });
    await expectMended('erased_object');
    await expect(stack.objectStore.stat(key)).rejects.toThrow(/no object/);
  });
});

async function* cut(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes.subarray(0, 100);
}

/** As takeIn makes it, after the starter took it once. */
async function addTask(
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

describe('workflows', () => {
  test('work whose workflow Temporal does not have is begun again', async () => {
    const { upstreamId, row } = await storedPicture();
    await query(stack.database, `update media set state = 'pending', sha256 = null where message_id = :id`, {
      id: row.id,
    });
    const workflowId = `media/${row.id}`;
    await addTask(workflowId, 'storeInboundMedia', { wabaId: WABA, messageId: row.id });
    await expectMended('task_without_workflow');
    await expectStored(upstreamId);
  });

  test('a workflow whose row is gone is terminated, one whose row is there goes on', async () => {
    const [gone, kept] = [randomBytes(5), randomBytes(5)].map((bytes) => `replay/x${bytes.toString('hex')}`);
    const taskQueue = queues().deliveries;
    for (const workflowId of [gone, kept] as string[]) {
      await stack.client.workflow.start('replayDeliveries', { taskQueue, workflowId, args: [{}] });
    }
    onTestFinished(() => void stack.client.workflow.getHandle(kept ?? '').terminate());
    await addTask(kept ?? '', 'replayDeliveries', {});
    await eventually('Temporal lists it', async () => 'workflow_without_row' in (await differences(LOOK)));
    await expectMended('workflow_without_row');
    expect(await statusOf(gone ?? '')).toBe('TERMINATED');
    expect(await statusOf(kept ?? '')).toBe('RUNNING');
    await query(stack.database, 'delete from workflow_tasks where workflow_id = :kept', { kept: kept ?? '' });
  });

  test('a workflow that ends a moment after its row is gone is no finding', async () => {
    const workflowId = `replay/x${randomBytes(5).toString('hex')}`;
    const { workflow } = stack.client;
    await workflow.start('replayDeliveries', { taskQueue: queues().deliveries, workflowId, args: [{}] });
    const listed = async () => 'workflow_without_row' in (await differences(LOOK));
    await eventually('Temporal lists it', listed);
    const looking = differences(LOOK);
    await setTimeout(1_000);
    await workflow.getHandle(workflowId).terminate();
    expect(await looking).toEqual({});
  });

  test('work whose workflow begins a moment after it was taken is no finding', async () => {
    const workflowId = `replay/x${randomBytes(5).toString('hex')}`;
    await addTask(workflowId, 'replayDeliveries', {});
    const looking = differences(LOOK);
    await setTimeout(1_000);
    const { workflow } = stack.client;
    await workflow.start('replayDeliveries', { taskQueue: queues().deliveries, workflowId, args: [{}] });
    expect(await looking).toEqual({});
    await workflow.getHandle(workflowId).terminate();
    await query(stack.database, 'delete from workflow_tasks where workflow_id = :workflowId', { workflowId });
  });

  test('a message that went out after the moment of the backup does not go out twice', async () => {
    const { row } = await storedPicture();
    const { id } = row;
    await query(
      stack.database,
      `insert into outbound_messages (message_id, waba_id, phone_number_id, recipient)
       values (:id, :waba, '800000000000111', '12025550143')`,
      { id, waba: WABA },
    );
    const [workflowId, input] = [`send/${id}`, { wabaId: WABA, messageId: id }];
    await carryOut(queues().sends, {
      sendToUpstream: async () => ({ outcome: 'accepted', summary: 'Upstream accepted it.' }),
    });
    const options = { taskQueue: queues().deliveries, workflowId, args: [input] };
    await stack.client.workflow.execute('sendMessage', options);
    // The API starts it itself, so it is not counted as taken.
    await addTask(workflowId, 'sendMessage', input, 0);
    await expectMended('send_already_made');
    const rows = await query<{ state: string; error: string }>(
      stack.database,
      'select state, error from outbound_messages where message_id = :id',
      { id },
    );
    expect(rows[0]?.state).toBe('unknown');
    expect(JSON.parse(rows[0]?.error ?? '')).toMatchObject({ code: 'outcome_unknown' });
    expect(await differences(LOOK)).toEqual({});
  });

  test('what was erased and is back is erased again, but nobody who came later and has the id by chance', async () => {
    await carryOut(queues().operations, { eraseData: async () => 'done' });
    const add = `insert into contacts (waba_id, wa_id, created_at) values (:waba, :phone, now() + cast(:age as interval)) returning id`;
    const ids: string[] = [];
    for (const [phone = '', age = ''] of [
      ['12025550181', '-1 hour'],
      ['12025550182', '1 hour'],
    ]) {
      const [contact] = await query<{ id: string }>(stack.database, add, { waba: WABA, phone, age });
      ids.push(contact?.id ?? '');
    }
    for (const id of ids) {
      const taskQueue = queues().deliveries;
      const options = { taskQueue, workflowId: `eraseCustomer/${id}`, args: [{ erasureId: '1' }] };
      await stack.client.workflow.execute('eraseCustomer', options);
    }
    const again = stack.client.workflow.getHandle(`eraseCustomer/${ids[0]}`);
    const { runId } = await again.describe();
    await eventually('Temporal lists it', async () => 'erasure_forgotten' in (await differences(LOOK)));
    await expectMended('erasure_forgotten');
    await eventually('it runs again, and ends', async () => {
      const latest = await again.describe();
      return latest.runId !== runId && latest.status.name === 'COMPLETED';
    });
    const rows = await query(stack.database, 'select kind, subject_id, state from erasures');
    expect(rows).toEqual([{ kind: 'customer', subject_id: ids[0], state: 'requested' }]);
    await query(stack.database, 'delete from workflow_tasks');
    // The starter may have taken the task once more before.
    const left = async () => Object.keys(await differences(FIX)).length;
    await eventually('no run is left of it', left, { is: 0 });
  });
});

describe('tables', () => {
  test('a sequence behind its table goes on behind it', async () => {
    const [row] = await query<{ id: string }>(
      stack.database,
      `insert into contacts (id, waba_id, wa_id)
       values (nextval(pg_get_serial_sequence('contacts', 'id')) + 1000, :waba, '12025550199') returning id`,
      { waba: WABA },
    );
    await expectMended('sequence_behind_table');
    const next = `select nextval(pg_get_serial_sequence('contacts', 'id')) as id`;
    expect(await query(stack.database, next)).toEqual([{ id: String(BigInt(row?.id ?? 0) + 1n) }]);
  });

  test('ids that Temporal knows are not given out again, nor the numbers that tenants have seen', async () => {
    const { row } = await storedPicture();
    const ahead = BigInt(row.id) + 5_000n;
    const workflowId = `media/${ahead}`;
    const argument = { wabaId: WABA, messageId: String(ahead) };
    await stack.client.workflow.execute('storeInboundMedia', {
      taskQueue: queues().deliveries,
      workflowId,
      args: [argument],
    });
    const keys = () =>
      query<{ key: string; last: string }>(
        stack.database,
        'select key, last_sequence as last from ordering_keys order by key',
      );
    const before = await keys();
    await eventually('Temporal lists it', async () => 'ids_given_out' in (await differences(LOOK)));
    expect(await differences(FIX)).toMatchObject({ ids_given_out: { found: 1, fixed: 0, left: 1 } });
    expect(await keys()).toEqual(before);
    await expectMended('ids_given_out', { ...FIX, rewound: true });
    const next = `select nextval(pg_get_serial_sequence('messages', 'id')) as id`;
    const [drawn] = await query<{ id: string }>(stack.database, next);
    expect(BigInt(drawn?.id ?? 0)).toBeGreaterThan(ahead);
    expect(before.length).toBeGreaterThan(0);
    expect(await keys()).toEqual(
      before.map(({ key, last }) => ({ key, last: String(Number(last) + 1_000) })),
    );
    // The first event of a key may have gone out and be forgotten: then nobody knows that key.
    const { body, upstreamId } = messageBody({ type: 'text', text: { body: 'new' } });
    await takeIn(stack.database, body);
    const given = 'select sequence from events where event_id = :upstreamId';
    expect(await query(stack.database, given, { upstreamId })).toEqual([{ sequence: '1001' }]);
    expect(await differences(LOOK)).toEqual({});
  });

  /** Drops the partition of a day to come. */
  async function dropADay(): Promise<void> {
    const [row] = await query<{ day: string }>(
      stack.database,
      `select cast((now() at time zone 'utc')::date + 5 as text) as day`,
    );
    await changePartition(stack.database, 'drop', 'events', row?.day ?? '');
  }

  test('days without a partition get one', async () => {
    await dropADay();
    await expectMended('partition_missing');
    expect(await differences(LOOK)).toEqual({});
  });

  test('upstream is asked for the numbers of every WABA, and the audit log says what was fixed', async () => {
    const tasks = `select workflow_id from workflow_tasks where workflow_type = 'refreshNumbers'`;
    await query(stack.database, 'delete from workflow_tasks');
    await differences(LOOK);
    expect(await query(stack.database, tasks)).toEqual([]);
    await dropADay();
    await differences(FIX);
    expect(await query(stack.database, tasks)).toEqual([{ workflow_id: `waba-numbers/${WABA}` }]);
    const entries = await query(
      stack.database,
      `select detail from audit_log
        where action = 'installation.reconciled' order by id desc limit 1`,
    );
    expect(entries).toEqual([{ detail: { partition_missing: 1 } }]);
  });
});

describe('the command', () => {
  const run = (env: Record<string, string>, args: string[]) =>
    runHere(reconcileCommand(TASK_KINDS), env, args);
  const settings = () =>
    testSettings(stack.config.database.url, {
      HELIOGRAPH_TEMPORAL_TASK_QUEUE_PREFIX: stack.config.temporal.taskQueuePrefix,
      HELIOGRAPH_OBJECT_STORE_BUCKET: stack.config.objectStore.bucket,
    });

  test('looks and says so with its exit code; --fix fixes', async () => {
    await query(stack.database, 'delete from workflow_tasks');
    const { upstreamId, row } = await storedPicture();
    await stack.objectStore.remove(row.objectKey);
    const look = await run(settings(), []);
    expect([look.exitCode, look.stderr]).toEqual([1, '']);
    expect(look.stdout).toMatch(/^media_without_object +1 +0 +1 /m);
    const fix = await run(settings(), ['--fix', '--json']);
    expect(fix.exitCode, fix.stdout).toBe(0);
    const { ok, findings } = JSON.parse(fix.stdout) as { ok: boolean; findings: Finding[] };
    expect(ok).toBe(true);
    expect(findings.find(({ kind }) => kind === 'media_without_object')).toMatchObject({
      found: 1,
      fixed: 1,
    });
    await expectStored(upstreamId);
    expect((await run(settings(), ['--dry-run'])).exitCode).toBe(0);
  });

  test('what cannot be looked at stops nothing else and is no success', async () => {
    const away = { ...settings(), HELIOGRAPH_OBJECT_STORE_URL: 'http://127.0.0.1:9' };
    const { exitCode, stdout } = await run(away, []);
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(/^media_without_object .*NOT FINISHED: The object store is not available/m);
    expect(stdout).toMatch(/^task_without_workflow +0 +0 +0 +pending work/m);
    expect(stdout).toMatch(/\d of \d+ checks could not be completed\.\n$/);
    expect(await run(settings(), ['--fix', '--dry-run'])).toMatchObject({
      exitCode: 2,
    });
  });
});
