import { expect, test } from 'vitest';
import { queueMessage } from '../../../../src/features/messages/send/queue-message.ts';
import { cancelScheduled, moveScheduled } from '../../../../src/features/messages/send/scheduled-messages.ts';
import { sharedMomentId } from '../../../../src/features/messages/send/shared-moment.ts';
import { SYSTEM } from '../../../../src/platform/audit/audit.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { ifOpen } from '../../../../src/platform/temporal/workflow-states.ts';
import { eventually } from '../../../support/webhook-receiver.ts';
import { sendingStackOfFile, textTo } from './sending-stack.ts';

const stack = sendingStackOfFile();

/** Each of these has its own workflow. */
const ALONE = 20;
const MANY = 50;

/** As a request, which may not give a time so soon. */
async function schedule(sendAt: Date, count = MANY): Promise<string[]> {
  const sender = { wabaId: stack.wabaId, keyId: null, maxMessagesPerDay: null, recipients: 'any' } as const;
  const ids: string[] = [];
  for (let n = 0; n < count; n += 1) {
    const message = { phoneNumberId: stack.number, ...textTo(), category: 'utility' };
    const times = { sendAt, notAfter: null };
    ids.push((await queueMessage(stack.database, sender, message as never, { key: null, times })) ?? '');
  }
  return ids;
}

const runOf = (workflowId: string) => ifOpen(stack.client.workflow.getHandle(workflowId).describe());
const momentOf = (sendAt: Date) =>
  sharedMomentId({ phoneNumberId: stack.number, sendAt: sendAt.toISOString() });
const tasksLeft = async () =>
  await query(stack.database, 'select 1 from workflow_tasks where waba_id = :waba', { waba: stack.wabaId });
const setPace = (perSecond: number) =>
  query(stack.database, 'update phone_numbers set messages_per_second = :perSecond where waba_id = :waba', {
    perSecond,
    waba: stack.wabaId,
  });

test('of many messages for one moment most leave by one workflow, at their time, each once, whatever ends it', async () => {
  await setPace(10);
  const sendAt = new Date(Date.now() + 10_000);
  const ids = await schedule(sendAt);
  await eventually('Temporal has the run', async () => (await runOf(momentOf(sendAt))) !== null);
  const run = await runOf(momentOf(sendAt));
  // It begins at the moment, give or take the clock of Temporal.
  expect(Math.abs((run?.executionTime?.getTime() ?? 0) - sendAt.getTime())).toBeLessThan(1_000);
  const some = 3;
  await eventually('some are sent', async () => (await stack.sent()).length >= ALONE + some);
  await stack.client.workflow.getHandle(momentOf(sendAt)).terminate('a test');
  await eventually('all are sent', async () => (await stack.sent()).length, { is: MANY });
  const states = `select distinct o.state, sm.send_at <= m.sent_at as "inTime" from outbound_messages o
    join scheduled_messages sm using (message_id) join messages m on m.id = o.message_id where o.waba_id = :waba`;
  const found = async () => await query(stack.database, states, { waba: stack.wabaId });
  await eventually('all are accepted, and none before its time', found, {
    is: [{ state: 'accepted', inTime: true }],
  });
  await eventually('no task is left', tasksLeft, { is: [] });
  const runs = await Promise.all(ids.map((id) => runOf(`send/${id}`)));
  expect(runs.filter((one) => one !== null)).toHaveLength(ALONE);
});

test('one of many for a moment is moved and cancelled as any other', async () => {
  const sendAt = new Date(Date.now() + 3_600_000);
  const ids = await schedule(sendAt, ALONE + 3);
  const [cancelled = '', moved = '', other = ''] = ids.slice(ALONE);
  const asking = { database: stack.database, actor: SYSTEM };
  expect(await cancelScheduled(asking, stack.wabaId, cancelled)).not.toBeNull();
  const soon = new Date(Date.now() + 2_000);
  await moveScheduled(asking, stack.wabaId, moved, { sendAt: soon.toISOString() }, soon.getTime() - 60_000);
  await eventually('the moved one is sent', async () => (await stack.get(moved)).body.state, {
    is: 'accepted',
  });
  expect(await stack.sent()).toHaveLength(1);
  expect((await stack.get(cancelled)).body.state).toBe('cancelled');
  expect((await stack.get(other)).body.state).toBe('scheduled');
  const tasks = 'select 1 from workflow_tasks where workflow_id = any (cast(:ids as text[]))';
  const left = (id: string) => query(stack.database, tasks, { ids: [`send/${id}`] });
  expect([await left(cancelled), await left(moved), (await left(other)).length]).toEqual([[], [], 1]);
});
