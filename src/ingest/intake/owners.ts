import type { InboxBody } from '../../engine/inbox/bodies.ts';
import { shardOf } from '../../engine/inbox/shards.ts';
import { AWAITS_NUMBER, NOT_OF_WABA, UNCLAIMED } from '../../engine/inbox/waiting-bodies.ts';
import {
  findKnownWabas,
  findNumberOwners,
  findOwnersOfPhones,
  findWabaOwners,
  type NumberOwner,
} from '../../features/accounts/number-owners.ts';
import { foldWord } from '../../features/accounts/opt-out-words.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import type { FieldItem } from '../split/field-items.ts';
import { saidText } from '../split/said-text.ts';
import type { Owned, UpstreamItem } from '../split/upstream-items.ts';
import { lockFurtherShards } from './intake-locks.ts';
import type { PlainItem } from './known-customers.ts';

type SortedItems = { owned: Owned[]; reasons: Map<UpstreamItem, string> };

/** `owners` were asked for before and did not change, as far as their WABA is in one of the shards that are held. */
export type KnownOwners = {
  owners: Map<string, NumberOwner>;
  held: ReadonlySet<number>;
  origins: ItemOrigins;
};

/**
 * Finds whose items they are, under the intake lock of the owner's shard: numbers come and go under that lock, so no item
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
  const ownerOfField = await ownersOfFields(trx, ofWabas, known.held);
  const strays = ofNumbers.filter((item) => !owners.has(item.phoneNumberId));
  const wabas =
    strays.length === 0
      ? new Set()
      : await findKnownWabas(trx, [...new Set(strays.map(({ wabaId }) => wabaId))]);
  const owned: Owned[] = [];
  const reasons = new Map<UpstreamItem, string>();
  for (const item of items) {
    const isField = item.kind === 'upstream';
    const owner = isField ? ownerOfField(item) : owners.get(item.phoneNumberId);
    if (owner === undefined) {
      const isAwaited = !isField && wabas.has(item.wabaId);
      reasons.set(item, isAwaited ? AWAITS_NUMBER : isField ? unknownWaba(item) : 'unknown_phone_number');
      continue;
    }
    const refusal = owner.removed ? 'removed_phone_number' : refusalOf(item, owner.wabaId, known.origins);
    const { wabaId, tenantId } = owner;
    const wish = wishOf(item, owner);
    if (refusal === null)
      owned.push({ item: isField ? { ...item, wabaId } : item, wabaId, tenantId, ...(wish && { wish }) });
    else reasons.set(item, refusal);
  }
  return { owned, reasons };
}

function unknownWaba({ isOfPartner }: FieldItem): string {
  return isOfPartner ? UNCLAIMED : 'unknown_waba';
}

/** Under the lock of its shard too where the body of an item stands for another WABA, or for none. */
async function ownersOfFields(trx: Transaction, items: readonly FieldItem[], held: ReadonlySet<number>) {
  const find = async () => ({
    byWaba: await findWabaOwners(trx, [...new Set(items.map(({ wabaId }) => wabaId))]),
    byPhone: await findOwnersOfPhones(trx, [...new Set(items.flatMap(({ phone }) => phone ?? []))]),
  });
  let found = await find();
  const shards = [...found.byWaba.values(), ...found.byPhone.values()].map(({ wabaId }) => shardOf(wabaId));
  const foreign = new Set(shards.filter((shard) => !held.has(shard)));
  if (foreign.size > 0) {
    await lockFurtherShards(trx, [...foreign]);
    found = await find();
  }
  return ({ wabaId, phone }: FieldItem) =>
    found.byWaba.get(wabaId) ?? (phone === null ? undefined : found.byPhone.get(phone));
}

async function ownersOf(
  trx: Transaction,
  ids: readonly string[],
  { owners, held }: Omit<KnownOwners, 'origins'>,
): Promise<Map<string, NumberOwner>> {
  const isHeld = ({ wabaId }: NumberOwner) => held.has(shardOf(wabaId));
  const known = new Map<string, NumberOwner>();
  for (const id of ids) {
    const owner = owners.get(id);
    if (owner !== undefined && isHeld(owner)) known.set(id, owner);
  }
  if (known.size === ids.length) return known;
  const asked = ids.filter((id) => !known.has(id));
  const foreign = new Map<string, number>();
  for (const [id, owner] of await findNumberOwners(trx, asked)) {
    if (isHeld(owner)) {
      owners.set(id, owner);
      known.set(id, owner);
    } else foreign.set(id, shardOf(owner.wabaId));
  }
  if (foreign.size === 0) return known;
  // Upstream named another WABA than the one that has the number: rare, and its shard is waited for.
  await lockFurtherShards(trx, [...new Set(foreign.values())]);
  return new Map([...known, ...(await findNumberOwners(trx, [...foreign.keys()]))]);
}

/** Null where it has to be asked whose a number is, where an item is refused, and where a message is more than that. */
export function ownedOf<Item extends PlainItem>(
  items: readonly Item[],
  { owners, held, origins }: KnownOwners,
): Owned<Item>[] | null {
  const owned: Owned<Item>[] = [];
  for (const item of items) {
    const owner = owners.get(item.phoneNumberId);
    if (owner === undefined || owner.removed || !held.has(shardOf(owner.wabaId))) return null;
    if (refusalOf(item, owner.wabaId, origins) !== null || wishOf(item, owner) !== undefined) return null;
    owned.push({ item, wabaId: owner.wabaId, tenantId: owner.tenantId });
  }
  return owned;
}

const LONGEST_WORD = 1_000;

/** The wish of a customer who wrote one of the tenant's words. Where the tenant has none, nothing is read. */
function wishOf(item: UpstreamItem, { words }: Pick<NumberOwner, 'words'>): Owned['wish'] {
  if (words === undefined || item.kind !== 'message') return undefined;
  const text = saidText(item);
  return text === null || text.length > LONGEST_WORD ? undefined : words.get(foldWord(text));
}

/** The body of an item, as far as it decides to which WABAs the item may go. */
type Origin = { signedFor: ReadonlySet<string> | null; waited: ReadonlySet<string> };

export type ItemOrigins = ReadonlyMap<UpstreamItem, Origin>;

export function originsOf(
  bodies: readonly { body: Pick<InboxBody, 'signedFor' | 'notes'>; items: readonly UpstreamItem[] }[],
): ItemOrigins {
  return new Map(
    bodies.flatMap(({ body: { signedFor, notes }, items }) => {
      const waited = (notes ?? []).filter(({ reason }) => reason === AWAITS_NUMBER || reason === NOT_OF_WABA);
      const origin = {
        signedFor: signedFor === null ? null : new Set(signedFor),
        waited: new Set(waited.map(({ path }) => path)),
      };
      return items.map((item) => [item, origin] as const);
    }),
  );
}

/**
 * Why an item may not go to the WABA that has its number; null: it may. Its app secret must be allowed to speak for that
 * WABA. A number that upstream named as one of another WABA before it was known may have become anybody's since.
 */
function refusalOf(item: UpstreamItem, ownerWabaId: string, origins: ItemOrigins): string | null {
  const origin = origins.get(item);
  if (origin === undefined) throw new Error(`the item ${item.path} is of no known body`);
  if (origin.signedFor?.has(ownerWabaId) === false) return 'not_signed_for_waba';
  return origin.waited.has(item.path) && item.wabaId !== ownerWabaId ? NOT_OF_WABA : null;
}
