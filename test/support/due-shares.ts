import type { Database } from '../../src/database/database.ts';
import { type DueShare, findDueEndpoints } from '../../src/deliveries/queue/due-pick.ts';
import { type HandedOver, handOverDue } from '../../src/deliveries/queue/hand-over.ts';

/** All open endpoints with something due, each with the same share. */
export async function dueShares(database: Database, share: number): Promise<DueShare[]> {
  const found = await findDueEndpoints(database, { afterEndpointId: '0', limit: 1_000 });
  return found
    .filter(({ isOpen }) => isOpen)
    .map(({ endpointId, replay, position }) => ({ endpointId, share, replay, position }));
}

/** Hands over what is due, whatever endpoints may have. */
export async function handOverAll(
  database: Database,
  limits: { limit: number; firstAttemptsPerEndpoint: number },
): Promise<HandedOver[]> {
  return await handOverDue(database, { ...limits, shares: await dueShares(database, 100) });
}
