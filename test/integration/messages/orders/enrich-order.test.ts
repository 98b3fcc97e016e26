import { randomInt } from 'node:crypto';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { findKnownProducts } from '../../../../src/features/messages/orders/known-products.ts';
import { releaseOverdueOrders } from '../../../../src/features/messages/orders/release-order.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { resetRun } from '../../../support/run-buttons.ts';
import { takeIn } from '../../../support/take-in.ts';
import { addEndpoint, testSecretBox } from '../../../support/test-accounts.ts';
import { seededDatabase } from '../../../support/test-database.ts';
import { eventually } from '../../../support/webhook-receiver.ts';
import { stack, useMediaStack } from '../media/inbound-media.ts';
import { messageBody, WABA } from '../media/media-stack.ts';

const PLACEHOLDER = 'https://gateway.example/assets/product-placeholder.png';

useMediaStack();
beforeEach(() => addEndpoint(stack.database, stack.wabaId, 'https://tenant.example/hook', ['order']));

let catalogNumber = 0;

const newCatalog = () => String(700_000_000_000_100 + ++catalogNumber);

function item(retailerId: string, quantity: number, price: number) {
  return { product_retailer_id: retailerId, quantity, item_price: price, currency: 'USD' };
}

/** Takes in an order and returns its upstream message id. */
async function receive(catalogId: string, items: object[]): Promise<string> {
  const order = { catalog_id: catalogId, text: '', product_items: items };
  const { body, upstreamId } = messageBody({ type: 'order', order }, stack);
  await takeIn(stack.database, body);
  return upstreamId;
}

type OrderRow = {
  id: string;
  number: string;
  service: string | null;
  body: string | null;
  queued: string | null;
};

async function orderOf(upstreamId: string): Promise<OrderRow> {
  const [row] = await query<OrderRow>(
    stack.database,
    `select o.id, o.number, o.service, convert_from(e.body, 'UTF8') as body, q.state as queued
       from messages m join orders o on o.message_id = m.id
       join events e on e.day = o.event_day and e.id = o.event_uuid
       left join delivery_queue q on q.event_uuid = e.id
      where m.upstream_id = :upstreamId`,
    { upstreamId },
  );
  if (row === undefined) throw new Error(`no order of ${upstreamId}`);
  return row;
}

async function released(upstreamId: string) {
  await eventually('the order is released', async () => (await orderOf(upstreamId)).body !== null);
  const row = await orderOf(upstreamId);
  return { ...row, event: JSON.parse(row.body ?? '') };
}

const catalogRequests = async () =>
  (await stack.upstreamRequests()).filter((request) => request.includes('/products'));

describe('an order', () => {
  test('goes out with names and images from the catalog and a total without float error', async () => {
    const catalogId = newCatalog();
    const items = [item('sku-red-42', 3, 0.1), item('sku-blue-7', 1, 0.2)];
    const { event, number, queued } = await released(await receive(catalogId, items));
    expect(event).toMatchObject({ eventType: 'order', eventId: catalogId, wabaId: stack.wabaId });
    expect(event.data.order).toEqual({ catalog_id: catalogId, text: '', product_items: items });
    expect(event.data.service).toEqual({
      order_id: Number(number),
      order_number: `ORD-${number}`,
      items_count: 2,
      total_amount: 0.5,
      currency: 'USD',
      thumbnail_url: 'https://example.com/catalog/sku-red-42.jpg',
      items: [
        {
          ...items[0],
          product_name: 'Demo Red 42',
          image_url: 'https://example.com/catalog/sku-red-42.jpg',
        },
        {
          ...items[1],
          product_name: 'Demo Blue 7',
          image_url: 'https://example.com/catalog/sku-blue-7.jpg',
        },
      ],
    });
    expect(queued).toBe('due');
    expect(
      await query(stack.database, 'select 1 from workflow_tasks where waba_id = :wabaId', {
        wabaId: stack.wabaId,
      }),
    ).toEqual([]);
  });

  test('asks the catalog once in 24 hours, also about a product that it does not know', async () => {
    const catalogId = newCatalog();
    const items = [item('sku-red-42', 1, 1), item('unknown-1', 1, 1)];
    const first = await released(await receive(catalogId, items));
    const second = await released(await receive(catalogId, items));
    expect(await catalogRequests()).toHaveLength(1);
    for (const { event } of [first, second]) {
      expect(event.data.service.items[0].product_name).toBe('Demo Red 42');
      expect(event.data.service.items[1]).toMatchObject({
        product_name: 'unknown-1',
        image_url: PLACEHOLDER,
      });
    }
    await query(
      stack.database,
      `update catalog_products set fetched_at = now() - interval '25 hours' where catalog_id = :catalogId`,
      { catalogId },
    );
    await released(await receive(catalogId, items));
    expect(await catalogRequests()).toHaveLength(2);
  });

  test('goes out with an old answer when the catalog fails now', async () => {
    const catalogId = newCatalog();
    await released(await receive(catalogId, [item('sku-red-42', 1, 1)]));
    await query(
      stack.database,
      `update catalog_products set fetched_at = now() - interval '25 hours' where catalog_id = :catalogId`,
      { catalogId },
    );
    await stack.addFault({ match: 'catalog', kind: 'status', status: 500 });
    const { event } = await released(await receive(catalogId, [item('sku-red-42', 1, 1)]));
    expect(event.data.service.items[0].product_name).toBe('Demo Red 42');
  });

  test.each([
    ['fails', { match: 'catalog', kind: 'status', status: 500 }],
    ['cuts the connection', { match: 'catalog', kind: 'reset' }],
    ['sends a body that never ends', { match: 'catalog', kind: 'endless' }],
    ['hangs', { match: 'catalog', kind: 'slow', delayMs: 60_000 }],
  ] as const)('goes out with what is known, within 5 seconds, when the catalog %s', async (_name, fault) => {
    await stack.addFault(fault);
    const startedMs = performance.now();
    const { event } = await released(await receive(newCatalog(), [item('sku-red-42', 2, 1.5)]));
    // What hangs does so for a minute.
    expect(performance.now() - startedMs).toBeLessThan(30_000);
    expect(event.data.service).toMatchObject({
      total_amount: 3,
      thumbnail_url: PLACEHOLDER,
      items: [{ product_name: 'sku-red-42', image_url: PLACEHOLDER }],
    });
  });

  test('goes out without asking when the WABA has no access token', async () => {
    await stack.setAccessToken(null);
    const { event } = await released(await receive(newCatalog(), [item('sku-red-42', 1, 1)]));
    expect(event.data.service.items[0].product_name).toBe('sku-red-42');
    expect(await catalogRequests()).toEqual([]);
  });

  test('holds back the next order of its catalog and no other', async () => {
    const slow = newCatalog();
    await stack.addFault({ match: 'catalog', kind: 'slow', delayMs: 3_000, id: slow });
    const first = await receive(slow, [item('sku-red-42', 1, 1)]);
    const second = await receive(slow, [item('sku-red-42', 1, 2)]);
    const other = await receive(newCatalog(), [item('sku-red-42', 1, 3)]);
    await released(other);
    expect((await orderOf(first)).queued).toBe('unreleased');
    expect((await orderOf(second)).queued).toBe('queued');
    await released(first);
    await released(second);
    expect((await orderOf(first)).queued).toBe('due');
    expect((await orderOf(second)).queued).toBe('queued');
  });

  test('that was released keeps its bytes when the workflow runs again, also after Reset in the Temporal UI', async () => {
    const upstreamId = await receive(newCatalog(), [item('sku-red-42', 1, 1)]);
    const { id, body } = await released(upstreamId);
    const result = await stack.client.workflow.execute('enrichOrder', {
      workflowId: `again/${id}`,
      taskQueue: stack.taskQueue,
      args: [{ wabaId: stack.wabaId, orderId: id }],
    });
    expect(result).toBe('Released before.');
    expect((await orderOf(upstreamId)).body).toBe(body);
    const run = stack.client.workflow.getHandle(`order/${id}`);
    expect(await run.result()).toMatch(/^Released with/);
    await resetRun(stack.client, `order/${id}`);
    expect(await run.result()).toBe('Released before.');
    expect((await orderOf(upstreamId)).body).toBe(body);
  });
});

/** A catalog that knows nothing; `asked` holds what it was asked for. */
function emptyCatalog() {
  const asked: string[] = [];
  const findProducts = async (_catalogId: string, retailerIds: readonly string[]) => {
    asked.push(...retailerIds);
    return [];
  };
  return { asked, graph: { findProducts } };
}

describe('what is known of products', () => {
  const longId = () =>
    Array.from({ length: 512 }, () => String.fromCharCode(randomInt(0x4e00, 0x9fff))).join('');

  test.each([
    ['product', () => [newCatalog(), longId()] as const],
    ['catalog', () => [longId(), 'sku-red-42'] as const],
  ])('a %s whose id is too long for the cache is not asked for', async (_name, ids) => {
    const { database } = stack;
    const { asked, graph } = emptyCatalog();
    const [catalogId, retailerId] = ids();
    const tools = { database, graph, secretBox: testSecretBox };
    const known = await findKnownProducts(tools, stack.wabaId, catalogId, [retailerId]);
    expect(known).toEqual({ products: new Map(), problem: null });
    expect(asked).toEqual([]);
  });

  test('is told although it cannot be kept', async () => {
    const { database } = stack;
    await query(database, `alter table catalog_products add constraint odd check (retailer_id <> 'odd')`);
    onTestFinished(() =>
      query(database, 'alter table catalog_products drop constraint odd').then(() => undefined),
    );
    const graph = { findProducts: async () => [{ retailerId: 'odd', name: 'Odd mug', imageUrl: null }] };
    const tools = { database, graph, secretBox: testSecretBox };
    const known = await findKnownProducts(tools, stack.wabaId, newCatalog(), ['odd']);
    expect(known.products.get('odd')).toEqual({ name: 'Odd mug' });
    expect(known.problem).toMatch(/could not be kept.*odd/);
  });
});

describe('overdue orders', () => {
  test('that cannot be released keep no other waiting', async () => {
    const { database } = await seededDatabase();
    await addEndpoint(database, WABA, 'https://tenant.example/hook', ['order']);
    for (let n = 0; n < 11; n += 1) {
      const order = { catalog_id: newCatalog(), text: '', product_items: [item('sku', 1, 1)] };
      await takeIn(database, messageBody({ type: 'order', order }).body);
    }
    await query(database, `update workflow_tasks set created_at = created_at - interval '1 minute'`);
    await query(
      database,
      `update orders set cart = '{' where id in (select id from orders order by id limit 10)`,
    );
    const tools = { database, secretBox: testSecretBox, publicUrl: 'https://gateway.example' };
    const released = releaseOverdueOrders({ ...tools, graph: emptyCatalog().graph });
    await expect(released).rejects.toThrow(SyntaxError);
    const [left] = await query(
      database,
      `select count(*) filter (where service is null) as waiting, count(*) from orders`,
    );
    expect(left).toEqual({ waiting: '10', count: '11' });
  });
});
