import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { ACCOUNT, bodyOf, textMessage } from '../load/upstream-bodies.ts';
import { addEndpoint } from '../test-accounts.ts';
import { answer, eventually } from '../webhook-receiver.ts';
import { ended, type Recorded, started } from './record-deliveries.ts';
import { type RecordingStack, WABA } from './recording-stack.ts';

/** Runs of `endpointTrouble`. */
export async function recordTrouble(stack: RecordingStack): Promise<Recorded> {
  const { database, receiver } = stack;
  const recorded = {
    'endpoint-trouble-over': await outage(stack),
    'endpoint-trouble-updates': await updated(stack),
  };
  await database.raw('delete from delivery_queue; delete from webhook_endpoints');
  receiver.behave(answer(200));
  return recorded;
}

/** A server is away for some attempts. */
async function outage(stack: RecordingStack): Promise<string> {
  const { database, receiver } = stack;
  const { id } = await addEndpoint(database, WABA, `${receiver.url}/outage`);
  receiver.behave(answer(503));
  await insertBodies(database, [bodyOf(ACCOUNT, [textMessage('wamid.OUTAGE', 'hello')])]);
  const failing = 'select 1 from delivery_queue where endpoint_id = :id and attempts > 1';
  await eventually('two failures', async () => (await query(database, failing, { id })).length, {
    is: 1,
  });
  const workflowId = `endpoint/${id}`;
  await started(stack, workflowId);
  receiver.behave(answer(200));
  await ended(stack, workflowId);
  return workflowId;
}

/** An operator acts in the Temporal UI until nothing waits. */
async function updated(stack: RecordingStack): Promise<string> {
  const { database, receiver, client } = stack;
  const { id } = await addEndpoint(database, WABA, `${receiver.url}/updated`);
  receiver.behave(answer(503, { 'retry-after': '3600' }));
  const texts = ['wamid.UPDATED1', 'wamid.UPDATED2'].map((name) => textMessage(name, 'hello'));
  await insertBodies(database, [bodyOf(ACCOUNT, texts)]);
  const workflowId = `endpoint/${id}`;
  const handle = client.workflow.getHandle(workflowId);
  await started(stack, workflowId);
  const failing = 'select 1 from delivery_queue where endpoint_id = :id and attempts > 0';
  await eventually('two failures', async () => (await query(database, failing, { id })).length, {
    is: 2,
  });
  await handle.executeUpdate('retryNow');
  await handle.executeUpdate('pause', { args: ['server migration'] });
  await eventually('nothing is under way', async () => {
    const claimed = `select 1 from delivery_queue where endpoint_id = :id and state = 'claimed'`;
    return (await query(database, claimed, { id })).length === 0;
  });
  await handle.executeUpdate('skipHead');
  await handle.executeUpdate('enable', { args: ['drop'] });
  await ended(stack, workflowId);
  return workflowId;
}
