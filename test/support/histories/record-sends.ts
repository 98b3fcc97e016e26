import { queueMessage } from '../../../src/features/messages/send/queue-message.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { ended, type Recorded, started } from './record-deliveries.ts';
import { control } from './record-media.ts';
import { type RecordingStack, WABA } from './recording-stack.ts';

const NUMBER = '800000000000111';

/** Runs of `sendMessage`. */
export async function recordSends(stack: RecordingStack): Promise<Recorded> {
  return {
    'send-message-accepted': await send(stack, '12025550151'),
    'send-message-failed': await refused(stack),
    'send-message-cancelled': await cancelled(stack),
  };
}

async function queue({ database }: RecordingStack, to: string): Promise<string> {
  const request = { phoneNumberId: NUMBER, to, type: 'text', text: { body: 'Hello' } };
  const sender = { wabaId: WABA, keyId: null, maxMessagesPerDay: null, recipients: 'any' } as const;
  return `send/${await queueMessage(database, sender, request, { key: null })}`;
}

async function send(stack: RecordingStack, to: string): Promise<string> {
  const workflowId = await queue(stack, to);
  await started(stack, workflowId);
  await ended(stack, workflowId);
  return workflowId;
}

async function refused(stack: RecordingStack): Promise<string> {
  await control(stack, 'POST', JSON.stringify({ match: 'send', kind: 'status', status: 400, code: 131047 }));
  const workflowId = await send(stack, '12025550152');
  await control(stack, 'DELETE');
  return workflowId;
}

async function cancelled(stack: RecordingStack): Promise<string> {
  await query(
    stack.database,
    `insert into send_pacing (phone_number_id, recipient, free_at) values (:number, :value, now() + interval '1 hour')`,
    { number: NUMBER, value: '12025550153' },
  );
  const workflowId = await queue(stack, '12025550153');
  await started(stack, workflowId);
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  await stack.client.workflow.getHandle(workflowId).cancel();
  await ended(stack, workflowId);
  return workflowId;
}
