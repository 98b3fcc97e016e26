import {
  findKnownWabas,
  findNumberOwners,
  findWabaOwners,
  type NumberOwner,
} from '../../accounts/accounts.ts';
import { shardOf } from '../../inbox/shards.ts';
import { AWAITS_NUMBER } from '../../inbox/waiting-bodies.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import { lockFurtherShards } from '../locks.ts';
import type { Owned, UpstreamItem } from '../split/upstream-items.ts';
import { type ItemOrigins, refusalOf } from './item-origins.ts';

type SortedItems = { owned: Owned[]; reasons: Map<UpstreamItem, string> };

/** `owners` were asked for before and did not change, as far as their WABA is in one of the shards that are held. */
export type KnownOwners = {
  owners: Map<string, NumberOwner>;
  held: ReadonlySet<number>;
  origins: ItemOrigins;
};

/**
 * Tells whose items they are, under the intake lock of the owner's shard: numbers come and go under that lock, so no item
 * goes to a WABA that does not have the number any more, and none overtakes one that waited for it.
 */
export async function sortItems(
  trx: Transaction,
  items: readonly UpstreamItem[],
  known: KnownOwners,
): Promise<SortedItems> {
  const ofNumbers = items.filter((item) => item.kind !== 'upstream');
  const ofWabas = items.filter((item) => item.kind === 'upstream');
  const owners = await ownersOf(trx, [...new Set(ofNumbers.map((item) => item.phoneNumberId))], known);
  const wabaOwners = await findWabaOwners(trx, [...new Set(ofWabas.map(({ wabaId }) => wabaId))]);
  const strays = ofNumbers.filter((item) => !owners.has(item.phoneNumberId));
  const wabas =
    strays.length === 0
      ? new Set()
      : await findKnownWabas(trx, [...new Set(strays.map(({ wabaId }) => wabaId))]);
  const owned: Owned[] = [];
  const reasons = new Map<UpstreamItem, string>();
  for (const item of items) {
    const isField = item.kind === 'upstream';
    const owner = isField ? wabaOwners.get(item.wabaId) : owners.get(item.phoneNumberId);
    if (owner === undefined) {
      const isAwaited = !isField && wabas.has(item.wabaId);
      reasons.set(item, isAwaited ? AWAITS_NUMBER : isField ? 'unknown_waba' : 'unknown_phone_number');
      continue;
    }
    const refusal = owner.removed ? 'removed_phone_number' : refusalOf(item, owner.wabaId, known.origins);
    if (refusal === null) owned.push({ item, wabaId: owner.wabaId, tenantId: owner.tenantId });
    else reasons.set(item, refusal);
  }
  return { owned, reasons };
}

async function ownersOf(
  trx: Transaction,
  ids: readonly string[],
  { owners, held }: Omit<KnownOwners, 'origins'>,
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
  const foreignIds = foreign.map(([id]) => id);
  const again = await findNumberOwners(trx, foreignIds);
  const own = [...found].filter(([, owner]) => isHeld(owner));
  return new Map([...remembered, ...own, ...again]);
}

/** Null where it has to be asked whose a number is, or where an item is refused. */
export function ownedOf(
  items: readonly UpstreamItem[],
  { owners, held, origins }: KnownOwners,
): Owned[] | null {
  const owned: Owned[] = [];
  for (const item of items) {
    if (item.kind === 'upstream') return null;
    const owner = owners.get(item.phoneNumberId);
    if (owner === undefined || owner.removed || !held.has(shardOf(owner.wabaId))) return null;
    if (refusalOf(item, owner.wabaId, origins) !== null) return null;
    owned.push({ item, wabaId: owner.wabaId, tenantId: owner.tenantId });
  }
  return owned;
}
