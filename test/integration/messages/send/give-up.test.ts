import { afterAll, beforeAll, expect, test } from 'vitest';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { eventually } from '../../../support/webhook-receiver.ts';
import { NUMBER, type SendingStack, startSendingStack, textTo } from './sending-stack.ts';

let stack: SendingStack;

beforeAll(async () => {
  stack = await startSendingStack();
});
afterAll(() => stack.stop());

test('a message whose workflow an operator cancels while it waits fails, and is never sent', async () => {
  await query(
    stack.database,
    `insert into send_pacing (phone_number_id, recipient, free_at)
     values ('${NUMBER}', '12025556666', now() + interval '1 hour')`,
  );
  const answer = stack.send(textTo('+12025556666'));
  let id = '';
  await eventually('the message waits', async () => {
    const rows = await query<{ id: string }>(
      stack.database,
      'select message_id as id from outbound_messages where pair_at is not null',
    );
    id = rows[0]?.id ?? '';
    return id !== '';
  });
  await stack.client.workflow.getHandle(`send/${id}`).cancel();
  const { status, body } = await answer;
  expect([status, body.error.code, body.error.serviceMessageId]).toEqual([424, 'message_not_sent', id]);
  const events = await query(stack.database, 'select event_id from events');
  expect(events).toEqual([{ event_id: `local:${id}` }]);
  expect(await stack.sendRequests()).toEqual([]);
});

test('a message whose workflow is terminated is taken up again', async () => {
  await stack.addFault({ match: 'send', kind: 'status', status: 503, code: 2, times: 2 });
  const answer = stack.send(textTo());
  await eventually('an attempt was made', async () => (await stack.sendRequests()).length > 0);
  const [row] = await query<{ id: string }>(
    stack.database,
    'select max(message_id) as id from outbound_messages',
  );
  await stack.client.workflow.getHandle(`send/${row?.id}`).terminate();
  await query(stack.database, 'update workflow_tasks set next_start_at = now()');
  const { status, body } = await answer;
  expect([status, body.state]).toEqual([200, 'accepted']);
  expect(await stack.sent()).toHaveLength(1);
});
