import { randomUUID } from 'node:crypto';
import {
  type ClaimedDelivery,
  claimDue,
  type DueShare,
  findDueEndpoints,
} from '../../src/engine/queue/claim.ts';
import type { Database } from '../../src/platform/postgres/database.ts';

/** All open endpoints with something due, each with the same share. */
export async function dueShares(database: Database, share: number): Promise<DueShare[]> {
  const found = await findDueEndpoints(database, { afterEndpointId: '0', limit: 1_000 });
  return found
    .filter(({ isOpen }) => isOpen)
    .map(({ endpointId, replay, position }) => ({ endpointId, share, replay, position }));
}

/** Claims what is due for a minute, whatever endpoints may have, under one token. */
export async function claimAll(
  database: Database,
  { token = randomUUID(), share = 100, limit = 100 }: { token?: string; share?: number; limit?: number } = {},
): Promise<{ deliveries: ClaimedDelivery[]; token: string }> {
  const shares = await dueShares(database, share);
  const deliveries = await claimDue(database, { shares, limit, token, leaseMs: 60_000 });
  return { deliveries, token };
}
