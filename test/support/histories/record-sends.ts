import { queueMessage } from '../../../src/features/messages/send/queue-message.ts';
import { sharedMomentId } from '../../../src/features/messages/send/shared-moment.ts';
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
    'send-scheduled-done': await scheduled(stack),
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

/** More than have a workflow each. */
async function scheduled(stack: RecordingStack): Promise<string> {
  const sender = { wabaId: WABA, keyId: null, maxMessagesPerDay: null, recipients: 'any' } as const;
  const sendAt = new Date(Date.now() + 5_000);
  for (let n = 0; n < 25; n += 1) {
    const to = String(12_025_550_160 + n);
    const request = { phoneNumberId: NUMBER, to, type: 'text', category: 'utility', text: { body: 'Hello' } };
    await queueMessage(stack.database, sender, request as never, {
      key: null,
      times: { sendAt, notAfter: null },
    });
  }
  const workflowId = sharedMomentId({ phoneNumberId: NUMBER, sendAt: sendAt.toISOString() });
  await started(stack, workflowId);
  await ended(stack, workflowId);
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
