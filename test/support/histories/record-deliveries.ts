import { deliveryStart } from '../../../src/engine/deliveries/dispatch/start-workflows.ts';
import { deliveryIdOfWorkflow } from '../../../src/engine/queue/claim.ts';
import { removeDelivery } from '../../../src/engine/queue/remove.ts';
import { insertTestEvent } from '../../../src/features/endpoints/test-event.ts';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { ACCOUNT, bodyOf, textMessage } from '../load/upstream-bodies.ts';
import { addEndpoint } from '../test-accounts.ts';
import { answer, type Behaviour, eventually } from '../webhook-receiver.ts';
import { oneRow, type RecordingStack, WABA } from './recording-stack.ts';

/** Workflow ids by the name of the history they become. */
export type Recorded = Record<string, string>;

/** Runs of `deliverEvent` and `deliverSession` that end in every way they can. */
export async function recordDeliveries(stack: RecordingStack): Promise<Recorded> {
  const { id } = await addEndpoint(stack.database, WABA, `${stack.receiver.url}/hook`);
  const recorded = {
    'deliver-event-delivered-at-once': await deliver(stack, answer(200)),
    'deliver-event-retried-then-delivered': await deliver(stack, once(500)),
    'deliver-event-failed-for-good': await deliver(stack, answer(500)),
    'deliver-event-cancelled': await cancelled(stack),
    'deliver-event-test-event': await testEvent(stack, id),
    'deliver-session-cancelled': await session(stack, 'cancelled', { stop: true }),
    'deliver-session-process-gone': await session(stack, 'gone', { stop: false }),
    'deliver-event-kept-until-its-endpoint-is-back': await keptWhileOff(stack, id),
    'deliver-event-dropped': await dropped(stack),
  };
  await stack.database.raw('delete from delivery_queue; delete from webhook_endpoints');
  stack.receiver.behave(answer(200));
  return recorded;
}

function once(status: number): Behaviour {
  let calls = 0;
  return (webhook, response) => {
    calls += 1;
    return answer(calls === 1 ? status : 200)(webhook, response);
  };
}

let messages = 0;

/** Sends one event and returns its workflow once that has ended. */
async function deliver(stack: RecordingStack, behaviour: Behaviour): Promise<string> {
  const workflowId = await send(stack, behaviour);
  await ended(stack, workflowId);
  return workflowId;
}

async function send({ database, receiver }: RecordingStack, behaviour: Behaviour): Promise<string> {
  receiver.behave(behaviour);
  messages += 1;
  const eventId = `wamid.HISTORY${messages}`;
  await insertBodies(database, [bodyOf(ACCOUNT, [textMessage(eventId, 'hello')])]);
  const workflowOf = () =>
    query<{ id: string }>(
      database,
      `select d.workflow_id as id from deliveries d join events e on e.id = d.event_uuid
        where e.event_id = :eventId and d.workflow_id like 'delivery/%'`,
      { eventId },
    );
  await eventually(`a workflow for ${eventId}`, async () => (await workflowOf()).length, { is: 1 });
  return (await workflowOf())[0]?.id ?? '';
}

/** However it ends. */
/** Waits for the start of a workflow. */
export async function started({ client }: RecordingStack, workflowId: string): Promise<void> {
  const handle = client.workflow.getHandle(workflowId);
  await eventually(`the start of ${workflowId}`, () =>
    handle.describe().then(
      () => true,
      () => false,
    ),
  );
}

export async function ended({ client }: RecordingStack, workflowId: string): Promise<void> {
  const handle = client.workflow.getHandle(workflowId);
  await eventually(
    `the end of ${workflowId}`,
    async () => (await handle.describe()).status.name !== 'RUNNING',
  );
}

/** Waits until a retry of the workflow's activity is due later, with the failure of the last try shown. */
export async function waitsForRetry({ client }: RecordingStack, workflowId: string): Promise<void> {
  const handle = client.workflow.getHandle(workflowId);
  await eventually(`a retry of ${workflowId}`, async () => {
    const { raw } = await handle.describe().catch(() => ({ raw: null }));
    return (raw?.pendingActivities ?? []).some((activity) => (activity.lastFailure?.message ?? '') !== '');
  });
}

async function cancelled(stack: RecordingStack): Promise<string> {
  const workflowId = await send(stack, answer(503, { 'retry-after': '60' }));
  await waitsForRetry(stack, workflowId);
  await stack.client.workflow.getHandle(workflowId).cancel();
  await ended(stack, workflowId);
  return workflowId;
}

/** Another process drops the delivery: its run finds out when it looks next, and is cancelled. */
async function dropped(stack: RecordingStack): Promise<string> {
  const workflowId = await send(stack, answer(503, { 'retry-after': '5' }));
  await waitsForRetry(stack, workflowId);
  const deliveryId = deliveryIdOfWorkflow(workflowId) ?? '';
  await stack.database.transaction((trx) => removeDelivery(trx, deliveryId, 'dropped by a user'));
  await ended(stack, workflowId);
  return workflowId;
}

/** The endpoint says that it is gone and is disabled; once it is enabled, a delivery loop delivers. */
async function keptWhileOff(stack: RecordingStack, endpointId: string): Promise<string> {
  const workflowId = await send(stack, answer(410));
  await waitsForRetry(stack, workflowId);
  stack.receiver.behave(answer(200));
  const mode = `update endpoint_health set mode = 'open', mode_changed_at = now() where endpoint_id = :endpointId`;
  await execute(stack.database, mode, { endpointId });
  await ended(stack, workflowId);
  return workflowId;
}

/** A test event, whose run makes the only attempt. */
async function testEvent(stack: RecordingStack, endpointId: string): Promise<string> {
  const { database, client } = stack;
  stack.receiver.behave(answer(200));
  const target = { endpoint: { id: endpointId, url: stack.receiver.url }, tenant: await tenantOf(database) };
  const label = await insertTestEvent(database, WABA, target);
  const tools = {
    taskQueue: stack.taskQueue,
    leaseMs: 4_000,
    eager: false,
    publicUrl: 'https://gateway.example',
  };
  const { workflowType, options } = deliveryStart(tools, label, {
    eventIdHash: label.eventId,
    news: null,
    held: false,
  });
  await client.workflow.start(workflowType, options);
  await ended(stack, options.workflowId);
  return options.workflowId;
}

async function tenantOf(database: RecordingStack['database']) {
  const text = `select t.id, t.business_name as "businessName" from tenants t join wabas w on w.tenant_id = t.id
                 where w.waba_id = :waba`;
  return await oneRow<{ id: string; businessName: string }>(database, text, { waba: WABA });
}

/** Of a process that nobody is any more: its activity is taken by nobody. `stop` cancels it before that is noticed. */
async function session(stack: RecordingStack, name: string, { stop }: { stop: boolean }): Promise<string> {
  const { client, taskQueue } = stack;
  const workflowId = `delivery-session/${name}`;
  const input = { taskQueue: `${taskQueue}-session-${name}` };
  const handle = await client.workflow.start('deliverSession', { taskQueue, workflowId, args: [input] });
  const isAsked = async () => ((await handle.describe()).raw.pendingActivities ?? []).length === 1;
  await eventually('its activity is asked for', isAsked);
  if (stop) await handle.cancel();
  await ended(stack, workflowId);
  return workflowId;
}
