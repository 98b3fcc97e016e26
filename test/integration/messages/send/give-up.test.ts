import { expect, test } from 'vitest';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { eventually } from '../../../support/webhook-receiver.ts';
import { sendingStackOfFile, textTo } from './sending-stack.ts';

const stack = sendingStackOfFile();

test('a message whose workflow an operator cancels while it waits fails, and is never sent', async () => {
  await query(
    stack.database,
    `insert into send_pacing (phone_number_id, recipient, free_at)
     values (:number, '12025556666', now() + interval '1 hour')`,
    { number: stack.number },
  );
  const answer = stack.send(textTo('+12025556666'));
  let id = '';
  await eventually('the message waits', async () => {
    const rows = await query<{ id: string }>(
      stack.database,
      'select message_id as id from outbound_messages where waba_id = :wabaId and pair_at is not null',
      { wabaId: stack.wabaId },
    );
    id = rows[0]?.id ?? '';
    return id !== '';
  });
  await stack.client.workflow.getHandle(`send/${id}`).cancel();
  const { status, body } = await answer;
  expect([status, body.error.code, body.error.serviceMessageId]).toEqual([424, 'message_not_sent', id]);
  const events = await query(stack.database, 'select event_id from events where waba_id = :wabaId', {
    wabaId: stack.wabaId,
  });
  expect(events).toEqual([{ event_id: `local:${id}` }]);
  expect(await stack.sendRequests()).toEqual([]);
});

test('a message whose workflow is terminated is taken up again', async () => {
  await stack.addFault({ match: 'send', kind: 'status', status: 503, code: 2, times: 2 });
  const answer = stack.send(textTo());
  await eventually('an attempt was made', async () => (await stack.sendRequests()).length > 0);
  const [row] = await query<{ id: string }>(
    stack.database,
    'select message_id as id from outbound_messages where waba_id = :wabaId',
    { wabaId: stack.wabaId },
  );
  await stack.client.workflow.getHandle(`send/${row?.id}`).terminate();
  const again = 'update workflow_tasks set next_start_at = now() where waba_id = :wabaId';
  await query(stack.database, again, { wabaId: stack.wabaId });
  const { status, body } = await answer;
  expect([status, body.state]).toEqual([200, 'accepted']);
  expect(await stack.sent()).toHaveLength(1);
});
