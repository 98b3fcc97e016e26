import type { NewBody, SignedBody } from '../../engine/inbox/bodies.ts';
import { splitUpstreamBody } from '../split/upstream-items.ts';
import { isPlain, type KnownCustomers, type PlainItem } from './known-customers.ts';
import { type ItemOrigins, originsOf } from './owners.ts';
import { newBodies } from './store-bodies.ts';

/**
 * More than that waits already when one of these transactions ends: then intake in larger groups, beside the ingress,
 * ingests more in a second.
 */
export const MOST = { bodies: 64, items: 200, bytes: 1024 * 1024, deliveries: 500 };

export type Batch = { bodies: NewBody[]; items: PlainItem[]; origins: ItemOrigins; shards: number[] };

type PlainBody = { signed: SignedBody; parts: { part: NewBody; items: PlainItem[] }[] };

/**
 * Of these bodies those that can be ingested at once. One that is not plain (too much, unreadable, with a file or a cart, with
 * parts that become no event) is left out, and so is what comes behind it in its shards, which are `left`.
 */
export function readPlain(
  bodies: readonly SignedBody[],
  customers: KnownCustomers,
  isPossible: (shard: number) => boolean,
): { plain: PlainBody[]; left: readonly number[] } {
  const plain: PlainBody[] = [];
  const left = new Set<number>();
  const room = { ...MOST };
  for (const signed of bodies) {
    const parts = newBodies([signed]);
    const isFree = parts.every(({ shard }) => isPossible(shard) && !left.has(shard));
    const read = isFree ? readParts(parts) : null;
    if (read !== null && takeRoom(room, sizeOf(signed, read, customers))) plain.push({ signed, parts: read });
    else for (const { shard } of parts) left.add(shard);
  }
  return { plain, left: [...left] };
}

function readParts(parts: readonly NewBody[]): PlainBody['parts'] | null {
  const read: PlainBody['parts'] = [];
  for (const part of parts) {
    const split = splitOrNull(part.body);
    if (split === null || split.quarantined.length > 0) return null;
    const items = split.items.filter(isPlain);
    if (items.length === 0 || items.length < split.items.length) return null;
    read.push({ part, items });
  }
  return read;
}

function splitOrNull(body: Buffer): ReturnType<typeof splitUpstreamBody> | null {
  try {
    return splitUpstreamBody(body);
  } catch {
    return null;
  }
}

function sizeOf({ body }: SignedBody, parts: PlainBody['parts'], customers: KnownCustomers): Size {
  const size = { bodies: 1, items: 0, bytes: body.length, deliveries: 0 };
  for (const { part, items } of parts) {
    size.items += items.length;
    size.deliveries += items.length * customers.subscribersOf(part.wabaId).length;
  }
  return size;
}

type Size = typeof MOST;

function takeRoom(room: Size, size: Size): boolean {
  const names = ['bodies', 'items', 'bytes', 'deliveries'] as const;
  if (names.some((name) => size[name] > room[name])) return false;
  for (const name of names) room[name] -= size[name];
  return true;
}

export function batchOf(plain: readonly PlainBody[]): Batch {
  const parts = plain.flatMap((one) => one.parts);
  return {
    bodies: parts.map(({ part }) => part),
    items: parts.flatMap(({ items }) => items),
    origins: originsOf(
      parts.map(({ part: { signedFor }, items }) => ({ body: { signedFor, notes: null }, items })),
    ),
    shards: [...new Set(parts.map(({ part }) => part.shard))],
  };
}
