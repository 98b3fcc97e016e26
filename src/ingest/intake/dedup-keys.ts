import { createHash } from 'node:crypto';
import { erasedName, wasErased } from '../../features/messages/messages.ts';
import { markedMessageId, sendMarker } from '../../features/messages/statuses.ts';
import { byteaArray } from '../../platform/postgres/arrays.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { execute, queryColumn } from '../../platform/postgres/sql.ts';
import type { Owned, UpstreamItem } from '../split/upstream-items.ts';
import { erasedNameOf } from './erased-name.ts';
import { NOTE_REPEATS } from './erased-repeats.ts';

type Keyed = { one: Owned; key: Buffer; hex: string };

/** The SHA-256 of an item's identity, by which an item counts once. */
export function dedupKeyOf({ dedupKey }: UpstreamItem): Buffer {
  return createHash('sha256').update(dedupKey).digest();
}

function withDedupKey(one: Owned): Keyed {
  const key = dedupKeyOf(one.item);
  return { one, key, hex: key.toString('hex') };
}

/**
 * Of the items those that did not come before. Upstream sends what it sent before, to us and to several of us at once: the
 * database decides who is first, and of several with one key in a batch the first counts.
 */
export async function claimNewItems(trx: Transaction, items: readonly Owned[]): Promise<Owned[]> {
  const keyed = items.map(withDedupKey);
  const different = [...new Map(keyed.map((one) => [one.hex, one])).values()];
  const keys = await queryColumn<string>(trx, `${CLAIM} select key from claimed`, claimedBy(different));
  const left = new Set(keys);
  return keyed.filter(({ hex }) => left.delete(hex)).map(({ one }) => one);
}

function claimedBy(keyed: readonly Keyed[]) {
  return {
    keys: byteaArray(keyed.map(({ key }) => key)),
    wabaIds: keyed.map(({ one }) => one.wabaId),
    names: keyed.map(({ one: { item } }) => erasedNameOf(item)),
    marks: keyed.map(({ one: { item } }) => erasedMarkOf(item)),
  };
}

/**
 * SQL: claims keys (SHA-256 digests, all different); `claimed` has those, in hex, that were not claimed before. Nothing is
 * claimed for what was erased: it counts as seen, and the raw body in which it came again is gone over later.
 */
const CLAIM = `
  with given as (
    select key, waba_id, ${wasErased('message')} or ${wasErased('mark')} as erased
      from unnest(:keys::bytea[], :wabaIds::text[], :names::text[], :marks::text[]) as g (key, waba_id, message, mark)
  ), repeated as (
    ${NOTE_REPEATS}
  ), claimed as (
    insert into dedup_keys (key) select key from given where not erased order by key
    on conflict do nothing returning encode(key, 'hex') as key
  )`;

/** A status of an erased message whose upstream id never became known carries our mark. */
export function erasedMarkOf(item: UpstreamItem): string | null {
  if (item.kind !== 'status') return null;
  const messageId = markedMessageId(item.rawJson);
  return messageId === null ? null : erasedName(item, sendMarker(messageId));
}

/** Upstream redelivers for 7 days. */
const DEDUP_DAYS = 14;

/** Forgets up to `limit` keys older than any redelivery, the oldest first; returns how many. */
export async function forgetOldDedupKeys(database: Database, limit: number): Promise<number> {
  return await execute(
    database,
    `delete from dedup_keys where key = any (array(
       select key from dedup_keys where first_seen_at < now() - interval '${DEDUP_DAYS} days'
        order by first_seen_at limit :limit))`,
    { limit },
  );
}
