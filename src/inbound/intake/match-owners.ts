import { findKnownWabas, findNumberOwners, type NumberOwner } from '../../accounts/accounts.ts';
import { lockFurtherShards, type Transaction } from '../../platform/postgres/database.ts';
import { shardOf } from '../shard.ts';
import type { UpstreamItem } from '../split/upstream-items.ts';
import { AWAITS_NUMBER } from '../waiting-bodies.ts';
import type { Owned } from './owned-item.ts';

/** Items of known numbers with their owners, and why each of the others becomes no event now. */
export type SortedItems = { owned: Owned[]; reasons: Map<UpstreamItem, string> };

/** `owners` were asked for before and did not change, as far as their WABA is in one of the shards that are held. */
export type KnownOwners = { owners: Map<string, NumberOwner>; held: ReadonlySet<number> };

/**
 * Tells whose items they are, under the intake lock of the owner's shard: numbers come and go under that lock, so no item
 * goes to somebody who does not have the number any more, and none overtakes one that waited for it.
 */
export async function sortItems(
  trx: Transaction,
  items: readonly UpstreamItem[],
  known: KnownOwners,
): Promise<SortedItems> {
  const owners = await ownersOf(trx, [...new Set(items.map((item) => item.phoneNumberId))], known);
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

async function ownersOf(
  trx: Transaction,
  ids: readonly string[],
  { owners, held }: KnownOwners,
): Promise<Map<string, NumberOwner>> {
  const isHeld = ({ wabaId }: NumberOwner) => held.has(shardOf(wabaId));
  const remembered = ids.flatMap((id) => {
    const owner = owners.get(id);
    return owner !== undefined && isHeld(owner) ? [[id, owner] as const] : [];
  });
  if (remembered.length === ids.length) return new Map(remembered);
  const isRemembered = new Set(remembered.map(([id]) => id));
  const asked = ids.filter((id) => !isRemembered.has(id));
  const found = await findNumberOwners(trx, asked);
  const foreign = [...found].filter(([, owner]) => !isHeld(owner));
  for (const [id, owner] of found) if (isHeld(owner)) owners.set(id, owner);
  if (foreign.length === 0) return new Map([...remembered, ...found]);
  // Upstream named another WABA than the one that has the number: rare, and its shard is waited for.
  await lockFurtherShards(trx, [...new Set(foreign.map(([, { wabaId }]) => shardOf(wabaId)))]);
  const again = await findNumberOwners(
    trx,
    foreign.map(([id]) => id),
  );
  const own = [...found].filter(([, owner]) => isHeld(owner));
  return new Map([...remembered, ...own, ...again]);
}

function wabaIdOf({ wabaId }: UpstreamItem): string {
  return wabaId;
}
