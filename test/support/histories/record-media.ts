import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { ACCOUNT, bodyOf, cartOrder, imageMessage } from '../load/upstream-bodies.ts';
import { eventually } from '../webhook-receiver.ts';
import { ended, type Recorded, started, waitsForRetry } from './record-deliveries.ts';
import { oneRow, type RecordingStack } from './recording-stack.ts';

const KNOWN_MEDIA = '600000000000001';
const GONE_MEDIA = '691111111111111111';

/** Runs of `storeInboundMedia` and `enrichOrder`. */
export async function recordMedia(stack: RecordingStack): Promise<Recorded> {
  return {
    'store-inbound-media-stored': await store(stack, KNOWN_MEDIA),
    'store-inbound-media-failed': await store(stack, GONE_MEDIA),
    'store-inbound-media-cancelled': await cancelled(stack),
    'enrich-order-released': await order(stack),
  };
}

let messages = 0;

async function receive({ database }: RecordingStack, mediaId: string): Promise<string> {
  messages += 1;
  const upstreamId = `wamid.MEDIA${messages}`;
  await insertBodies(database, [bodyOf(ACCOUNT, [imageMessage(upstreamId, mediaId)])]);
  await takenIn(database, upstreamId);
  const { id } = await oneRow<{ id: string }>(
    database,
    'select id from messages where upstream_id = :upstreamId',
    { upstreamId },
  );
  return `media/${id}`;
}

async function takenIn(database: RecordingStack['database'], upstreamId: string): Promise<void> {
  await eventually('taken in', async () => {
    return (
      (await query(database, 'select 1 from messages where upstream_id = :upstreamId', { upstreamId }))
        .length === 1
    );
  });
}

async function store(stack: RecordingStack, mediaId: string): Promise<string> {
  const workflowId = await receive(stack, mediaId);
  await started(stack, workflowId);
  await ended(stack, workflowId);
  return workflowId;
}

async function cancelled(stack: RecordingStack): Promise<string> {
  const fault = { match: 'media_lookup', kind: 'status', status: 503 };
  await control(stack, 'POST', JSON.stringify(fault));
  const workflowId = await receive(stack, KNOWN_MEDIA);
  await waitsForRetry(stack, workflowId);
  await stack.client.workflow.getHandle(workflowId).cancel();
  await ended(stack, workflowId);
  await control(stack, 'DELETE');
  return workflowId;
}

export async function control({ upstreamUrl }: RecordingStack, method: string, body?: string): Promise<void> {
  const headers = { 'content-type': 'application/json' };
  const sent = await fetch(`${upstreamUrl}/sandbox/faults`, {
    method,
    ...(body === undefined ? {} : { body, headers }),
  });
  if (!sent.ok) throw new Error(`the stand-in answered ${sent.status}: ${await sent.text()}`);
}

async function order(stack: RecordingStack): Promise<string> {
  const upstreamId = 'wamid.ORDER1';
  await insertBodies(stack.database, [bodyOf(ACCOUNT, [cartOrder(upstreamId, '700000000000001')])]);
  await takenIn(stack.database, upstreamId);
  const { id } = await oneRow<{ id: string }>(
    stack.database,
    'select o.id from orders o join messages m on m.id = o.message_id where m.upstream_id = :upstreamId',
    { upstreamId },
  );
  const workflowId = `order/${id}`;
  await started(stack, workflowId);
  await ended(stack, workflowId);
  return workflowId;
}
