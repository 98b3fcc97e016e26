import { Webhook } from 'standardwebhooks';
import { describe, expect, onTestFinished, test } from 'vitest';
import { enqueueDeliveries } from '../../../src/engine/queue/enqueue.ts';
import { findLate } from '../../../src/engine/queue/sweep.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { uuidV7 } from '../../../src/platform/public-ids.ts';
import { startAdmin, WABA } from '../../support/admin-cli.ts';
import { answer, startReceiver } from '../../support/webhook-receiver.ts';
import { startWorkerProcess } from '../../support/worker-process.ts';

async function receiver() {
  const started = await startReceiver();
  onTestFinished(() => started.close());
  return started;
}

describe('admin endpoint test', () => {
  test('reaches the chosen endpoint only, whatever its mode and filters, once, and find shows it', async () => {
    const stack = await startAdmin();
    const { json, database } = stack;
    const target = await receiver();
    const bystander = await receiver();
    const add = ['endpoint', 'add', '--waba', WABA];
    const { id, secret } = await json(...add, '--url', `${target.url}/hook`, '--events', 'status');
    await json(...add, '--url', `${bystander.url}/hook`);
    await json('endpoint', 'pause', id);
    const worker = startWorkerProcess(stack.settings);
    onTestFinished(() => worker.stop());
    await worker.ready();

    const delivered = await json('endpoint', 'test', id);
    expect(delivered).toMatchObject({
      eventId: expect.stringMatching(/^test_\d+$/),
      deliveryId: expect.stringMatching(/^dlv_[0-9a-f]{32}$/),
      endpointId: id,
      state: 'delivered',
      statusCode: 200,
      error: null,
      durationMs: expect.any(Number),
      workflowId: expect.stringMatching(new RegExp(`^delivery/${id}/dlv_`)),
    });
    expect(delivered.workflowUrl).toBe(
      `http://127.0.0.1:8233/namespaces/default/workflows/${encodeURIComponent(delivered.workflowId)}`,
    );
    expect(target.received).toHaveLength(1);
    const [webhook] = target.received;
    expect(webhook?.headers['x-service-delivery-id']).toBe(delivered.deliveryId);
    const headers = webhook?.headers as Record<string, string>;
    const event = new Webhook(secret).verify(webhook?.body ?? '', headers);
    expect(event).toMatchObject({
      eventType: 'test',
      wabaId: WABA,
      phoneNumberId: 'TEST_PHONE_NUMBER_ID',
      eventId: delivered.eventId,
      data: { message: expect.any(String), businessName: 'Fixture Store' },
    });

    target.behave(answer(503));
    const failed = await json('endpoint', 'test', id);
    expect(failed).toMatchObject({ state: 'failed', statusCode: 503, error: expect.stringContaining('503') });
    expect(failed.eventId).not.toBe(delivered.eventId);
    expect(target.received).toHaveLength(2);
    expect(bystander.received).toHaveLength(0);
    expect(await query(database, 'select 1 from delivery_queue')).toEqual([]);

    expect(await json('find', failed.eventId)).toMatchObject({
      id: failed.eventId,
      events: [
        {
          webhookId: failed.webhookId,
          eventType: 'test',
          deliveries: [
            {
              deliveryId: failed.deliveryId,
              endpointId: id,
              state: 'failed',
              queueState: null,
              attempts: 1,
              workflowUrl: failed.workflowUrl,
              attemptLog: [{ attempt: 1, statusCode: 503, durationMs: failed.durationMs }],
            },
          ],
        },
      ],
    });
  });

  test('stays queued for a worker when Temporal is away, and says so', async () => {
    const stack = await startAdmin({ settings: { HELIOGRAPH_TEMPORAL_ADDRESS: '127.0.0.1:9' } });
    const { admin, json, database } = stack;
    const { id } = await json('endpoint', 'add', '--waba', WABA, '--url', 'http://127.0.0.1:9/hook');
    const run = await admin(['endpoint', 'test', id, '--json']);
    expect(run.exitCode).toBe(0);
    expect(run.stderr).toMatch(/^note: Temporal at 127\.0\.0\.1:9 did not take the workflow .*queued/);
    const result = JSON.parse(run.stdout);
    expect(result).toMatchObject({ state: 'pending', statusCode: null, workflowId: null, workflowUrl: null });
    expect((await findLate(database, { runGraceMs: 0, limit: 10 })).tests).toHaveLength(1);
    const { events } = await json('find', result.eventId);
    expect(events[0].deliveries).toMatchObject([
      { state: 'pending', queueState: 'retrying', attemptLog: [] },
    ]);
  });

  test("takes another number when a tenant's reference id looks like a test event and holds its lane", async () => {
    const stack = await startAdmin({ settings: { HELIOGRAPH_TEMPORAL_ADDRESS: '127.0.0.1:9' } });
    const { json, database } = stack;
    const { id } = await json('endpoint', 'add', '--waba', WABA, '--url', 'http://127.0.0.1:9/hook');
    const day = new Date().toISOString().slice(0, 10);
    const ids = { deliveryDay: day, eventDay: day };
    await database.transaction((trx) =>
      enqueueDeliveries(trx, [
        {
          endpointId: id,
          lane: 'test_1',
          released: true,
          deliveryId: uuidV7(Date.now()),
          eventUuid: uuidV7(Date.now()),
          ...ids,
        },
      ]),
    );
    expect(await json('endpoint', 'test', id)).toMatchObject({ eventId: 'test_2', state: 'pending' });
    expect(await query(database, 'select event_id from events')).toEqual([{ event_id: 'test_2' }]);
  });
});
