import { setCurrentDetails } from '@temporalio/workflow';
import type { EnrichOrderActivities } from '../activities/enrich-order.ts';
import type { EnrichOrderInput } from '../features/messages/orders/release-order.ts';
import { activitiesOn } from './kit.ts';

const activities = () =>
  activitiesOn<EnrichOrderActivities>('orders', {
    startToCloseTimeout: '1 minute',
    summary: 'look up products, release the event',
  });

/**
 * Fills `data.service` of one order and releases its `order` event, whose place intake reserved.
 *
 *   enrichAndReleaseOrder: at most 5 s for the catalog, then with what is known ─▶ released
 *
 * Terminate loses nothing: the task in the database starts this workflow again, and a worker releases an order that has
 * waited for 3 s without it.
 */
export async function enrichOrder(input: EnrichOrderInput): Promise<string> {
  setCurrentDetails(
    `**Looking up the products of order ${input.orderId}** of WABA ${input.wabaId}.\n\n` +
      'Its `order` event and later orders of the catalog wait for this.',
  );
  const summary = await activities().enrichAndReleaseOrder(input);
  setCurrentDetails(`**Order ${input.orderId}.** ${summary}`);
  return summary;
}
