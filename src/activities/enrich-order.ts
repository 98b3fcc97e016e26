import { Context } from '@temporalio/activity';
import type { ApplicationFailure } from '@temporalio/common';
import type { Logger } from 'pino';
import { releaseReservedEvent } from '../deliveries/publish.ts';
import {
  findKnownProducts,
  type KnownProducts,
  type ProductTools,
} from '../messages/orders/known-products.ts';
import {
  type CartItem,
  findOrder,
  type OrderEventParts,
  orderEventData,
  orderService,
  type StoredOrder,
  saveOrderService,
} from '../messages/orders.ts';
import { isTransientError } from '../platform/postgres/error-class.ts';
import { notYet, unexpectedFailure } from '../platform/temporal/activity-kit.ts';
import { finishTask } from '../platform/temporal/workflow-tasks.ts';

/** Ids only: the cart is in the database. */
export type EnrichOrderInput = { wabaId: string; orderId: string };

export type EnrichOrderActivities = ReturnType<typeof makeEnrichOrderActivities>;

export type EnrichOrderTools = ProductTools & {
  /** Where tenants reach the service, https. */
  publicUrl: string;
  logger: Pick<Logger, 'warn'>;
};

/** What intake stored of a cart. */
type StoredCart = { parts: OrderEventParts; items: CartItem[] };

/** Path of the image that stands in for a missing one. */
const PLACEHOLDER_PATH = '/assets/product-placeholder.png';

const LONGEST_DELAY_MS = 30_000;

/** The activities of `enrichOrder`. */
export function makeEnrichOrderActivities(tools: EnrichOrderTools) {
  return {
    /** Looks products up for at most 5 seconds and releases the event; repeated only while the database is away. */
    async enrichAndReleaseOrder(input: EnrichOrderInput): Promise<string> {
      try {
        return await enrich(tools, input);
      } catch (error) {
        throw retryLater(tools, input, error);
      }
    },
  };
}

async function enrich(tools: EnrichOrderTools, input: EnrichOrderInput): Promise<string> {
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

/** One transaction: the enrichment, the event's body, the end of the task. */
async function release(
  { database, publicUrl }: EnrichOrderTools,
  { wabaId, orderId }: EnrichOrderInput,
  order: StoredOrder,
  cart: StoredCart,
  { products }: KnownProducts,
): Promise<void> {
  const placeholderImageUrl = `${publicUrl}${PLACEHOLDER_PATH}`;
  const service = orderService({ orderId: order.number, items: cart.items, products, placeholderImageUrl });
  const dataJson = orderEventData(cart.parts, service);
  await database.transaction(async (trx) => {
    await finishTask(trx, orderTaskId(orderId));
    await saveOrderService(trx, wabaId, orderId, service);
    const event = { wabaId, day: order.eventDay, uuid: order.eventUuid, dataJson };
    await releaseReservedEvent(trx, event, new Date());
  });
}

async function endedBefore({ database }: EnrichOrderTools, { orderId }: EnrichOrderInput): Promise<string> {
  await database.transaction((trx) => finishTask(trx, orderTaskId(orderId)));
  return 'Released before.';
}

function orderTaskId(orderId: string): string {
  return `order/${orderId}`;
}

function summaryOf(retailerIds: readonly string[], { products, problem }: KnownProducts): string {
  const named = retailerIds.filter((retailerId) => products.get(retailerId)?.name !== undefined).length;
  const summary = `Released with ${named} of ${retailerIds.length} products known.`;
  return problem === null ? summary : `${summary} The others could not be looked up: ${problem}`;
}

function retryLater(tools: EnrichOrderTools, input: EnrichOrderInput, error: unknown): ApplicationFailure {
  const { attempt } = Context.current().info;
  const delayMs = Math.min(1_000 * 2 ** Math.min(attempt - 1, 10), LONGEST_DELAY_MS);
  const reason = error instanceof Error ? error.message : 'unknown failure';
  if (!isTransientError(error)) {
    tools.logger.warn({ err: error, ...input }, 'order enrichment: unexpected failure');
    return unexpectedFailure(reason, delayMs);
  }
  return notYet('NotYetReleased', `The database is not available: ${reason}.`, delayMs);
}
