import { addRecipients } from '../../../src/features/messages/broadcasts/broadcast-lines.ts';
import { changeBroadcast, createBroadcast } from '../../../src/features/messages/broadcasts/broadcasts.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import { execute } from '../../../src/platform/postgres/sql.ts';
import { eventually } from '../webhook-receiver.ts';
import { ended, type Recorded, started, waitsForRetry } from './record-deliveries.ts';
import { type RecordingStack, WABA } from './recording-stack.ts';

const NUMBER = '800000000000111';

/** Runs of `sendBroadcast`. */
export async function recordBroadcasts(stack: RecordingStack): Promise<Recorded> {
  return {
    'send-broadcast-done': await done(stack),
    'send-broadcast-in-parts': await inParts(stack),
    'send-broadcast-paused-and-resumed': await pausedAndResumed(stack),
    'send-broadcast-cancelled': await cancelled(stack),
  };
}

let phones = 0;

async function startedWith(stack: RecordingStack, recipients: number): Promise<string> {
  const tools = { database: stack.database, actor: SYSTEM };
  const template = { name: 'winter_sale', language: { code: 'en_US' } };
  const given = { name: 'Sale', phoneNumberId: NUMBER, template };
  const { id } = await createBroadcast(tools, WABA, given, { requestedBy: 'recorder', limits: null });
  const ids = { wabaId: WABA, broadcastId: id };
  const people = Array.from({ length: recipients }, () => ({ to: `1202555${2_000 + phones++}` }));
  await addRecipients(tools, ids, people);
  await changeBroadcast(tools, ids, 'start', null);
  await started(stack, `broadcast/${id}`);
  return `broadcast/${id}`;
}

async function done(stack: RecordingStack): Promise<string> {
  const workflowId = await startedWith(stack, 3);
  await ended(stack, workflowId);
  return workflowId;
}

async function inParts(stack: RecordingStack): Promise<string> {
  const workflowId = await startedWith(stack, 150);
  await ended(stack, workflowId);
  return workflowId;
}

/** Its turns are so far away that it waits. */
async function slowly(stack: RecordingStack): Promise<string> {
  const text = `insert into send_pacing (phone_number_id, recipient, free_at)
    values (:number, '*', now() + interval '15 seconds') on conflict (phone_number_id, recipient) do update set free_at = excluded.free_at`;
  await execute(stack.database, text, { number: NUMBER });
  const workflowId = await startedWith(stack, 40);
  await waitsForRetry(stack, workflowId);
  return workflowId;
}

async function pausedAndResumed(stack: RecordingStack): Promise<string> {
  const workflowId = await slowly(stack);
  const handle = stack.client.workflow.getHandle(workflowId);
  await handle.signal('pause');
  await eventually('it is paused', async () => {
    return ((await handle.query('progress')) as { state: string } | null)?.state === 'paused';
  });
  await waitsForRetry(stack, workflowId);
  await handle.signal('resume');
  await ended(stack, workflowId);
  return workflowId;
}

async function cancelled(stack: RecordingStack): Promise<string> {
  const workflowId = await slowly(stack);
  await stack.client.workflow.getHandle(workflowId).cancel();
  await ended(stack, workflowId);
  return workflowId;
}
