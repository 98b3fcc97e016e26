import { keyRequestWorkflowId } from '../../../src/features/keys/key-request-store.ts';
import { decideKeyRequest, requestKey } from '../../../src/features/keys/key-requests.ts';
import { revealKey } from '../../../src/features/keys/reveal-key.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import { eventually } from '../webhook-receiver.ts';
import { ended, type Recorded } from './record-deliveries.ts';
import { type RecordingStack, WABA } from './recording-stack.ts';

/** Runs of `approveApiKey`. */
export async function recordApprovals(stack: RecordingStack): Promise<Recorded> {
  return {
    'approve-api-key-revealed': await revealed(stack),
    'approve-api-key-signals': await signalled(stack),
    'approve-api-key-cancelled': await cancelled(stack),
  };
}

async function requested({ database, client }: RecordingStack, user: string) {
  const requester = { id: user, name: `${user}@shop.example` };
  const tools = { database, actor: SYSTEM };
  const { id } = await requestKey(tools, WABA, requester, { purpose: 'order system' });
  const workflowId = keyRequestWorkflowId(id);
  const handle = client.workflow.getHandle(workflowId);
  await eventually('it has looked at the request', async () => {
    const description = await handle.describe().catch(() => null);
    return (description?.memo?.scopes ?? null) !== null;
  });
  return { id, tools, handle, workflowId };
}

async function revealed(stack: RecordingStack): Promise<string> {
  const { id, tools, handle, workflowId } = await requested(stack, 'ann');
  const length = async () => (await handle.describe()).historyLength;
  const before = await length();
  await decideKeyRequest(tools, id, { state: 'approved', note: 'as agreed' });
  await eventually('it has seen the approval', async () => (await length()) > before + 8);
  await revealKey(tools, WABA, id);
  await ended(stack, workflowId);
  return workflowId;
}

async function signalled(stack: RecordingStack): Promise<string> {
  const { id, tools, handle, workflowId } = await requested(stack, 'ben');
  await handle.signal('approve', 5);
  await handle.signal('aprove');
  await handle.signal('approve', { note: 'fine', by: 'Kim' });
  await handle.signal('approve');
  await handle.signal('deny', 'on second thought');
  await decideKeyRequest(tools, id, { state: 'denied', note: '' });
  await ended(stack, workflowId);
  return workflowId;
}

async function cancelled(stack: RecordingStack): Promise<string> {
  const { id, tools, handle, workflowId } = await requested(stack, 'cho');
  await handle.cancel();
  await decideKeyRequest(tools, id, { state: 'denied', note: '' });
  await ended(stack, workflowId);
  return workflowId;
}
