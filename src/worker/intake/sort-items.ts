import { findKnownWabas, findNumberOwners, type NumberOwner } from '../../database/accounts.ts';
import type { Transaction } from '../../database/database.ts';
import { AWAITS_NUMBER } from '../../database/waiting-bodies.ts';
import type { UpstreamItem } from '../../domain/upstream/upstream-items.ts';
import type { Owned } from './owned-item.ts';

/** Items of known numbers with their owners, and why each of the others becomes no event now. */
export type SortedItems = { owned: Owned[]; reasons: Map<UpstreamItem, string> };

/**
 * Tells whose items they are, under the intake lock: numbers come and go under that lock, so no item goes to somebody
 * who does not have the number any more, and none overtakes one that waited for it. `owners` are those that were asked
 * for before and did not change; it learns of others.
 */
export async function sortItems(
  trx: Transaction,
  items: readonly UpstreamItem[],
  owners: Map<string, NumberOwner>,
): Promise<SortedItems> {
  const missing = new Set(items.map((item) => item.phoneNumberId).filter((id) => !owners.has(id)));
  for (const [id, owner] of await findNumberOwners(trx, [...missing])) owners.set(id, owner);
  const strays = items.filter((item) => !owners.has(item.phoneNumberId));
  const wabas =
    strays.length === 0 ? new Set() : await findKnownWabas(trx, [...new Set(strays.map(wabaIdOf))]);
  const owned: Owned[] = [];
  const reasons = new Map<UpstreamItem, string>();
  for (const item of items) {
    const owner = owners.get(item.phoneNumberId);
    if (owner === undefined) {
      reasons.set(item, wabas.has(item.wabaId) ? AWAITS_NUMBER : 'unknown_phone_number');
    } else if (owner.removed) reasons.set(item, 'removed_phone_number');
    else owned.push({ item, wabaId: owner.wabaId, tenantId: owner.tenantId });
  }
  return { owned, reasons };
}

function wabaIdOf({ wabaId }: UpstreamItem): string {
  return wabaId;
}
