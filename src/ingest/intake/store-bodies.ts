import { insertParts, type NewBody, type SignedBody, wakeIntake } from '../../engine/inbox/bodies.ts';
import { shardOf } from '../../engine/inbox/shards.ts';
import { items, member, sourceOf } from '../../platform/json/json-text.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { NO_WABA, wabaIdOf } from '../split/item-context.ts';
import { upstreamRootOf } from '../split/upstream-items.ts';

/**
 * Keeps some of the bodies and ingests them in one transaction; the others, and those unless `isKept`, which never
 * rejects, are to be kept the usual way. What is committed all the same then counts once, by its deduplication keys.
 * `onSent` is called when all of its statements are sent: later bodies may be given from then on, and wait in the database
 * for what they have to wait for. `stored` resolves when all of these bodies are kept in either way: until then no later one
 * of their shards overtakes those that are kept the usual way.
 */
export type KeepAtOnce = (
  bodies: readonly SignedBody[],
  onSent: () => void,
  stored?: Promise<unknown>,
) => {
  usual: readonly SignedBody[];
  tried: readonly SignedBody[];
  isKept: Promise<boolean>;
};

/**
 * Keeps raw upstream bodies, in the order given, and wakes the intake of their shards. One statement for all that wait. A
 * body is kept as it is, unless its entries are of several WABAs: then as one body for each (docs/decisions/0005).
 */
export async function insertBodies(
  database: Database,
  bodies: readonly (Buffer | SignedBody)[],
): Promise<void> {
  const given = newBodies(bodies.map((body) => (Buffer.isBuffer(body) ? { body, signedFor: null } : body)));
  await insertParts(database, given);
  wakeIntake(
    database,
    given.map(({ shard }) => shard),
  );
}

export function newBodies(bodies: readonly SignedBody[]): NewBody[] {
  return bodies.flatMap(({ body: whole, signedFor }) =>
    splitByWaba(whole).map(({ wabaId, body }) => {
      const known = wabaId ?? NO_WABA;
      return { wabaId: known, shard: shardOf(known), body, signedFor };
    }),
  );
}

/** A body, or what of it is one WABA's; null: it does not say whose. */
type WabaPart = { wabaId: string | null; body: Buffer };

/** How upstream begins a body: up to the changes of its first entry. */
const BEGINNING =
  /^\s*\{\s*"object"\s*:\s*"[^"\\]*"\s*,\s*"entry"\s*:\s*\[\s*\{\s*"id"\s*:\s*"(\d{1,64})"\s*,\s*"changes"/;
const BEGINNING_BYTES = 256;

/** The text around the entries of a body, for each of its WABAs; of real ones it is half a line. */
const MAX_REPEATED_CHARS = 256;

/**
 * Splits a body by the WABAs of its entries, in the order in which each comes first. A body of one WABA, and one that
 * cannot be read, stays as it is, byte for byte.
 */
export function splitByWaba(body: Buffer): WabaPart[] {
  const only = onlyWaba(body);
  if (only !== null) return [{ wabaId: only, body }];
  const root = upstreamRootOf(body);
  const entryNode = member(root, 'entry');
  if (root === null || entryNode === null || entryNode.kind !== 'array') return [{ wabaId: null, body }];
  const byWaba = new Map<string | null, string[]>();
  for (const entry of items(entryNode)) {
    const wabaId = wabaIdOf(entry);
    const entries = byWaba.get(wabaId) ?? [];
    entries.push(sourceOf(entry));
    byWaba.set(wabaId, entries);
  }
  const [first] = byWaba.keys();
  if (byWaba.size <= 1) return [{ wabaId: first ?? null, body }];
  const text = sourceOf(root);
  const before = text.slice(0, entryNode.start - root.start);
  const after = text.slice(entryNode.end - root.start);
  // As many copies of something long as there are WABAs would be more than fits into memory.
  const isShort = before.length + after.length <= MAX_REPEATED_CHARS;
  return [...byWaba].map(([wabaId, entries], index) => {
    const [head, tail] = isShort || index === 0 ? [before, after] : ['{"entry":', '}'];
    return { wabaId, body: Buffer.from(`${head}[${entries.join(',')}]${tail}`) };
  });
}

/**
 * The WABA of a body with one entry in upstream's way of writing, without reading all of it. Within a JSON string the
 * second quote would be escaped, so where the name is not found again there is no other entry with changes, and where
 * `waba_info` is not found the entry has the id of its WABA.
 */
function onlyWaba(body: Buffer): string | null {
  const found = BEGINNING.exec(body.toString('latin1', 0, BEGINNING_BYTES));
  if (found?.[1] === undefined) return null;
  return ['"changes"', '"waba_info"'].some((name) => body.includes(name, found[0].length)) ? null : found[1];
}
