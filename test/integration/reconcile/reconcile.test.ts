import { randomBytes } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { changePartition } from '../../../src/platform/postgres/partitions.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { takeIn } from '../../support/take-in.ts';
import { eventually } from '../../support/webhook-receiver.ts';
import { messageBody, WABA } from '../messages/media/media-stack.ts';
import {
  addTask,
  carryOut,
  differences,
  expectMended,
  expectStored,
  FIX,
  LOOK,
  queues,
  type ReconcileStack,
  startReconcileStack,
  statusOf,
  storedPicture,
} from './reconcile-stack.ts';

let stack: ReconcileStack;

beforeAll(async () => {
  stack = await startReconcileStack();
});
afterAll(async () => await stack?.stop());

describe('workflows', () => {
  test('work whose workflow Temporal does not have is begun again', async () => {
    const { upstreamId, row } = await storedPicture(stack);
    await query(stack.database, `update media set state = 'pending', sha256 = null where message_id = :id`, {
      id: row.id,
    });
    const workflowId = `media/${row.id}`;
    await addTask(stack, workflowId, 'storeInboundMedia', { wabaId: WABA, messageId: row.id });
    await expectMended(stack, 'task_without_workflow');
    await expectStored(stack, upstreamId);
  });

  test('a workflow whose row is gone is terminated, one whose row is there goes on', async () => {
    const [gone, kept] = [randomBytes(5), randomBytes(5)].map((bytes) => `replay/x${bytes.toString('hex')}`);
    const taskQueue = queues(stack).deliveries;
    for (const workflowId of [gone, kept] as string[]) {
      await stack.client.workflow.start('replayDeliveries', { taskQueue, workflowId, args: [{}] });
    }
    onTestFinished(() => void stack.client.workflow.getHandle(kept ?? '').terminate());
    await addTask(stack, kept ?? '', 'replayDeliveries', {});
    await eventually(
      'Temporal lists it',
      async () => 'workflow_without_row' in (await differences(stack, LOOK)),
    );
    await expectMended(stack, 'workflow_without_row');
    expect(await statusOf(stack, gone ?? '')).toBe('TERMINATED');
    expect(await statusOf(stack, kept ?? '')).toBe('RUNNING');
    await query(stack.database, 'delete from workflow_tasks where workflow_id = :kept', { kept: kept ?? '' });
  });

  test('a workflow that ends a moment after its row is gone is no finding', async () => {
    const workflowId = `replay/x${randomBytes(5).toString('hex')}`;
    const { workflow } = stack.client;
    await workflow.start('replayDeliveries', { taskQueue: queues(stack).deliveries, workflowId, args: [{}] });
    const listed = async () => 'workflow_without_row' in (await differences(stack, LOOK));
    await eventually('Temporal lists it', listed);
    const looking = differences(stack, LOOK);
    await setTimeout(1_000);
    await workflow.getHandle(workflowId).terminate();
    expect(await looking).toEqual({});
  });

  test('work whose workflow begins a moment after it was taken is no finding', async () => {
    const workflowId = `replay/x${randomBytes(5).toString('hex')}`;
    await addTask(stack, workflowId, 'replayDeliveries', {});
    const looking = differences(stack, LOOK);
    await setTimeout(1_000);
    const { workflow } = stack.client;
    await workflow.start('replayDeliveries', { taskQueue: queues(stack).deliveries, workflowId, args: [{}] });
    expect(await looking).toEqual({});
    await workflow.getHandle(workflowId).terminate();
    await query(stack.database, 'delete from workflow_tasks where workflow_id = :workflowId', { workflowId });
  });

  test('a message that went out after the moment of the backup does not go out twice', async () => {
    const { row } = await storedPicture(stack);
    const { id } = row;
    await query(
      stack.database,
      `insert into outbound_messages (message_id, waba_id, phone_number_id, recipient)
       values (:id, :waba, '800000000000111', '12025550143')`,
      { id, waba: WABA },
    );
    const [workflowId, input] = [`send/${id}`, { wabaId: WABA, messageId: id }];
    await carryOut(stack, queues(stack).sends, {
      sendToUpstream: async () => ({ outcome: 'accepted', summary: 'Upstream accepted it.' }),
    });
    const options = { taskQueue: queues(stack).deliveries, workflowId, args: [input] };
    await stack.client.workflow.execute('sendMessage', options);
    // The API starts it itself, so it is not counted as taken.
    await addTask(stack, workflowId, 'sendMessage', input, 0);
    await expectMended(stack, 'send_already_made');
    const rows = await query<{ state: string; error: string }>(
      stack.database,
      'select state, error from outbound_messages where message_id = :id',
      { id },
    );
    expect(rows[0]?.state).toBe('unknown');
    expect(JSON.parse(rows[0]?.error ?? '')).toMatchObject({ code: 'outcome_unknown' });
    expect(await differences(stack, LOOK)).toEqual({});
  });

  test('what was erased and is back is erased again, but nobody who came later and has the id by chance', async () => {
    await carryOut(stack, queues(stack).operations, { eraseData: async () => 'done' });
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
      const taskQueue = queues(stack).deliveries;
      const options = { taskQueue, workflowId: `eraseCustomer/${id}`, args: [{ erasureId: '1' }] };
      await stack.client.workflow.execute('eraseCustomer', options);
    }
    const again = stack.client.workflow.getHandle(`eraseCustomer/${ids[0]}`);
    const { runId } = await again.describe();
    await eventually(
      'Temporal lists it',
      async () => 'erasure_forgotten' in (await differences(stack, LOOK)),
    );
    await expectMended(stack, 'erasure_forgotten');
    await eventually('it runs again, and ends', async () => {
      const latest = await again.describe();
      return latest.runId !== runId && latest.status.name === 'COMPLETED';
    });
    const rows = await query(stack.database, 'select kind, subject_id, state from erasures');
    expect(rows).toEqual([{ kind: 'customer', subject_id: ids[0], state: 'requested' }]);
    await query(stack.database, 'delete from workflow_tasks');
    // The starter may have taken the task once more before.
    const left = async () => Object.keys(await differences(stack, FIX)).length;
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
    await expectMended(stack, 'sequence_behind_table');
    const next = `select nextval(pg_get_serial_sequence('contacts', 'id')) as id`;
    expect(await query(stack.database, next)).toEqual([{ id: String(BigInt(row?.id ?? 0) + 1n) }]);
  });

  test('ids that Temporal knows are not given out again, nor the numbers that tenants have seen', async () => {
    const { row } = await storedPicture(stack);
    const ahead = BigInt(row.id) + 5_000n;
    const workflowId = `media/${ahead}`;
    const argument = { wabaId: WABA, messageId: String(ahead) };
    await stack.client.workflow.execute('storeInboundMedia', {
      taskQueue: queues(stack).deliveries,
      workflowId,
      args: [argument],
    });
    const keys = () =>
      query<{ key: string; last: string }>(
        stack.database,
        'select key, last_sequence as last from ordering_keys order by key',
      );
    const before = await keys();
    await eventually('Temporal lists it', async () => 'ids_given_out' in (await differences(stack, LOOK)));
    expect(await differences(stack, FIX)).toMatchObject({ ids_given_out: { found: 1, fixed: 0, left: 1 } });
    expect(await keys()).toEqual(before);
    await expectMended(stack, 'ids_given_out', { ...FIX, rewound: true });
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
    expect(await differences(stack, LOOK)).toEqual({});
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
    await expectMended(stack, 'partition_missing');
    expect(await differences(stack, LOOK)).toEqual({});
  });

  test('upstream is asked for the numbers of every WABA, and the audit log says what was fixed', async () => {
    const tasks = `select workflow_id from workflow_tasks where workflow_type = 'refreshNumbers'`;
    await query(stack.database, 'delete from workflow_tasks');
    await differences(stack, LOOK);
    expect(await query(stack.database, tasks)).toEqual([]);
    await dropADay();
    await differences(stack, FIX);
    expect(await query(stack.database, tasks)).toEqual([{ workflow_id: `waba-numbers/${WABA}` }]);
    const entries = await query(
      stack.database,
      `select detail from audit_log
        where action = 'installation.reconciled' order by id desc limit 1`,
    );
    expect(entries).toEqual([{ detail: { partition_missing: 1 } }]);
  });
});
