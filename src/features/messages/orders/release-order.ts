import { releaseReservedEvent } from '../../../engine/deliveries/release-event.ts';
import type { Config } from '../../../platform/config/config.ts';
import { openGraphClient } from '../../../platform/graph/graph-client.ts';
import type { Logger } from '../../../platform/logger.ts';
import { type Loop, startLoop, type WorkWatch } from '../../../platform/loop.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { isDataError } from '../../../platform/postgres/error-class.ts';
import { queryColumn } from '../../../platform/postgres/sql.ts';
import { finishTask } from '../../../platform/temporal/workflow-tasks.ts';
import { findKnownProducts, type KnownProducts, type ProductTools } from './known-products.ts';
import {
  type CartItem,
  findOrder,
  type OrderEventParts,
  orderEventData,
  orderService,
  orderWorkflowId,
  type StoredOrder,
  saveOrderService,
} from './orders.ts';

export type EnrichOrderInput = { wabaId: string; orderId: string };

export type ReleaseOrderTools = ProductTools & {
  /** Where tenants reach the service, https. */
  publicUrl: string;
};

type StoredCart = { parts: OrderEventParts; items: CartItem[] };

const PLACEHOLDER_PATH = '/assets/product-placeholder.png';

/** Longer than a workflow takes while all is well; of a catalog that takes longer, the same is asked twice. */
const OVERDUE_SECONDS = 3;

const OVERDUE_AT_ONCE = 10;

/**
 * Serves while Temporal is away or has lost a node, oldest orders side by side; true when there may be more. Their workflows find nothing
 * to do. Rejects while the database is away, and for an order that cannot be released, once the others are.
 */
export async function releaseOverdueOrders(tools: ReleaseOrderTools): Promise<boolean> {
  const failures: unknown[] = [];
  for (;;) {
    // Those that failed are still the oldest.
    const overdue = await listOverdue(tools.database, failures.length);
    const released = await Promise.allSettled(overdue.map((input) => enrichAndRelease(tools, input)));
    failures.push(...released.flatMap((one) => (one.status === 'rejected' ? [one.reason] : [])));
    const mayBeMore = overdue.length === OVERDUE_AT_ONCE;
    if (failures.length === 0) return mayBeMore;
    if (!mayBeMore || !failures.every(isDataError)) throw failures[0];
  }
}

/** SQL: whether an order reserves its place. */
const HAS_RESERVED = `exists (select from workflow_tasks where workflow_type = 'enrichOrder')`;

async function listOverdue(database: Database, skipped: number): Promise<EnrichOrderInput[]> {
  return await queryColumn<EnrichOrderInput>(
    database,
    `select argument from workflow_tasks
      where workflow_type = 'enrichOrder' and created_at < now() - :overdueSeconds * interval '1 second'
      order by created_at, workflow_id limit :overdueAtOnce offset :skipped`,
    { overdueSeconds: OVERDUE_SECONDS, overdueAtOnce: OVERDUE_AT_ONCE, skipped },
  );
}

/** Takes at most 5 seconds for the catalog. Returns a sentence for operators. Rejects while the database is away. */
export async function enrichAndRelease(tools: ReleaseOrderTools, input: EnrichOrderInput): Promise<string> {
  const order = await findOrder(tools.database, input.wabaId, input.orderId);
  if (order === null) return 'There is no such order.';
  if (order.service !== null) return await endedBefore(tools, input);
  const cart = JSON.parse(order.cartJson) as StoredCart;
  const retailerIds = cart.items.flatMap(({ retailerId }) => (retailerId === null ? [] : [retailerId]));
  const unique = [...new Set(retailerIds)];
  const known = await findKnownProducts(tools, input.wabaId, order.catalogId, unique);
  await release(tools, input, order, cart, known);
  return summaryOf(unique, known);
}

async function release(
  { database, publicUrl }: ReleaseOrderTools,
  { wabaId, orderId }: EnrichOrderInput,
  order: StoredOrder,
  cart: StoredCart,
  { products }: KnownProducts,
): Promise<void> {
  const placeholderImageUrl = `${publicUrl}${PLACEHOLDER_PATH}`;
  const service = orderService({ orderId: order.number, items: cart.items, products, placeholderImageUrl });
  const dataJson = orderEventData(cart.parts, service);
  await database.transaction(async (trx) => {
    await finishTask(trx, orderWorkflowId(orderId));
    await saveOrderService(trx, wabaId, orderId, service);
    const event = { wabaId, day: order.eventDay, uuid: order.eventUuid, dataJson };
    await releaseReservedEvent(trx, event, new Date());
  });
}

async function endedBefore(
  { database }: { database: Database },
  { orderId }: EnrichOrderInput,
): Promise<string> {
  await database.transaction((trx) => finishTask(trx, orderWorkflowId(orderId)));
  return 'Released before.';
}

function summaryOf(retailerIds: readonly string[], { products, problem }: KnownProducts): string {
  const named = retailerIds.filter((retailerId) => products.get(retailerId)?.name !== undefined).length;
  const summary = `Released with ${named} of ${retailerIds.length} products known.`;
  return problem === null ? summary : `${summary} ${problem}`;
}

/** Orders do not wait for Temporal for long; one worker sees to that. */
export function startOrderRelease(
  config: Config,
  tools: Pick<ProductTools, 'database' | 'secretBox'> & {
    logger: Logger;
    isLeader: () => boolean;
    workWatch?: WorkWatch;
  },
): Loop {
  const { database, secretBox, logger, isLeader, workWatch } = tools;
  const graph = openGraphClient(config);
  const release = { database, secretBox, graph, publicUrl: config.api.publicUrl };
  const loop = startLoop({
    name: 'order-release',
    logger,
    isLeader,
    work: { watch: workWatch, hasWork: HAS_RESERVED },
    turn: () => releaseOverdueOrders(release),
  });
  return { ...loop, stop: () => loop.stop().then(() => graph.close()) };
}
