import { findOldestBodies, insertParts, type NewBody } from '../../engine/inbox/bodies.ts';
import { intakeEpochs } from '../../engine/inbox/intake-lock.ts';
import type { ClaimedDelivery } from '../../engine/queue/claim.ts';
import type { DirectClaims } from '../../engine/queue/enqueue.ts';
import { tracing } from '../../platform/metrics/metrics.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import type { Owned, UpstreamItem } from '../split/upstream-items.ts';
import { commitItems } from './commit-items.ts';
import { tryIntakeLocks } from './intake-locks.ts';
import { type IntakeTools, tracedItem } from './intake-tools.ts';
import { isPlain, type PlainItem } from './known-customers.ts';
import { guessOf, ingestGuessed } from './one-turn.ts';
import { type KnownOwners, ownedOf, sortItems } from './owners.ts';
import { type Batch, MOST } from './plain-bodies.ts';
import { readAhead } from './read-ahead.ts';
import { lookOf, noteEpochs, type ShardMemory } from './shard-memory.ts';

/**
 * A body that arrives beside one statement of few bodies shares the next one, unless it takes longer than that: bodies of other
 * shards must not wait for it. Beside one of many bodies the next batch is prepared at once.
 */
const GATHER_MS = 4;
const MANY_BODIES = 8;

/**
 * Bodies that are not stored yet. `isUsual`: they are being kept the usual way, and what comes behind them in their shards is
 * kept behind them.
 */
export type UnderWay = {
  shards: readonly number[];
  isUsual: boolean;
  isOneStatement: boolean;
  isKept: Promise<boolean>;
};

/** Something has to be ingested before, or in another way. */
class NotNowError extends Error {}

/** `before`: earlier ones of the same shards; `onBusy` gets the shards that another process works on. */
export type Ways = {
  before: readonly UnderWay[];
  waitMs: number;
  onBusy: (shard: number) => void;
  onSent: () => void;
  onOneStatement: () => void;
};

export async function keepAndTakeIn(
  tools: IntakeTools,
  batch: Batch,
  given: Ways,
): Promise<'done' | 'not now'> {
  const startMs = Date.now();
  const known = { owners: tools.memory.owners, held: new Set(batch.shards), origins: batch.origins };
  const owned = ownedOf(batch.items, known);
  const plain = plainItemsOf(owned);
  // One statement waits for no lock. And which of two gets the lock first is up to the machine: behind one, all wait.
  const awaited = given.before.filter(({ isOneStatement }) => isOneStatement || plain !== null);
  const before = given.before.filter((one) => !awaited.includes(one));
  try {
    if ((await Promise.all(awaited.map(({ isKept }) => isKept))).includes(false)) return 'not now';
    const ways = { ...given, before };
    const isTakenIn = plain !== null && (await takeInPlain(tools, batch, plain, ways));
    if (!isTakenIn)
      await withClaims(tools, (claims) => takeInUnknown(tools, batch, { known, owned, claims, ways }));
  } catch (error) {
    if (!(error instanceof NotNowError)) tools.logger.debug({ err: error }, 'falling back to normal intake');
    return 'not now';
  }
  tools.memory.stored();
  if (batch.items.length > 0)
    tracing.note?.({ name: 'intake', about: batch.items.map(tracedItem), startMs, endMs: Date.now() });
  for (const _ of batch.bodies) tools.onBody('done');
  return 'done';
}

/** Null for work that stored nothing: then it returns false. */
async function withClaims(
  { directClaims }: IntakeTools,
  work: (claims: DirectClaims | null) => Promise<ClaimedDelivery[] | null>,
): Promise<boolean> {
  const claims = directClaims();
  try {
    const claimed = await work(claims);
    if (claimed === null) claims?.cancel();
    else claims?.carry(claimed);
    return claimed !== null;
  } catch (error) {
    claims?.cancel();
    throw error;
  }
}

/** Null where there are none, or other items beside them. */
function plainItemsOf(owned: readonly Owned[] | null): Owned<PlainItem>[] | null {
  const plain = owned?.filter(isPlain) ?? [];
  return plain.length > 0 && plain.length === owned?.length ? plain : null;
}

/** In one statement, behind a look at those customers who are not remembered; false where something is not as it was then. */
async function takeInPlain(
  tools: IntakeTools,
  batch: Batch,
  items: readonly Owned<PlainItem>[],
  { waitMs, onSent, onOneStatement }: Ways,
): Promise<boolean> {
  const { database, memory } = tools;
  if (batch.shards.some((shard) => memory.of(shard).epoch() === null)) return false;
  onOneStatement();
  const find = await readAhead(database, memory.customers, items);
  const guess = find && guessOf(memory, batch, items, { find, mostDeliveries: MOST.deliveries });
  if (guess === null) return false;
  const gather = setTimeout(onSent, GATHER_MS);
  const ways = { waitMs, onSent: batch.bodies.length >= MANY_BODIES ? onSent : () => undefined };
  const ingest = (claimer: DirectClaims | null) => ingestGuessed(database, guess, { ...ways, claimer });
  const isDone = await withClaims(tools, ingest).finally(() => clearTimeout(gather));
  if (!isDone) memory.customers.forgetRecipients(items);
  for (const { owned, customer } of isDone ? guess.items : [])
    if (customer.isNew) memory.customers.add(owned, customer);
  return isDone;
}

async function takeInUnknown(
  { database, memory }: IntakeTools,
  batch: Batch,
  given: { known: KnownOwners; owned: Owned[] | null; claims: DirectClaims | null; ways: Ways },
): Promise<ClaimedDelivery[]> {
  const { known, ways } = given;
  return await database.transaction(async (trx) => {
    const memories = batch.shards.map((shard) => memory.of(shard));
    const mayWrite = prepare(trx, memories, batch.bodies, ways);
    mayWrite.catch(() => undefined);
    const owned = given.owned ?? (await sortAll(trx, batch.items, { known, mayWrite }));
    const { customers } = memory;
    const limits = { mayWrite, mostDeliveries: MOST.deliveries, customers };
    const last = await commitItems(trx, owned, given.claims, limits);
    ways.onSent();
    return last;
  });
}

async function sortAll(
  trx: Transaction,
  items: readonly UpstreamItem[],
  { known, mayWrite }: { known: KnownOwners; mayWrite: Promise<void> },
): Promise<Owned[]> {
  await mayWrite;
  const sorted = await sortItems(trx, items, known);
  if (sorted.reasons.size > 0) throw new NotNowError();
  return sorted.owned;
}

/**
 * Stores the bodies as ingested. Resolves when they are the next of their shards and what is remembered is still so;
 * otherwise that is forgotten, so that the next bodies can be.
 */
async function prepare(
  trx: Transaction,
  memories: readonly ShardMemory[],
  bodies: readonly NewBody[],
  { before, waitMs, onBusy }: Ways,
): Promise<void> {
  const shards = memories.map(({ shard }) => shard);
  const areStill = noteEpochs(memories);
  const startMs = performance.now();
  const awaited = before.flatMap((earlier) => earlier.shards).filter((shard) => shards.includes(shard));
  const [held, epochs, older, , areKept] = await Promise.all([
    tryIntakeLocks(trx, shards, { waitMs, awaited }),
    intakeEpochs(trx),
    findOldestBodies(trx, memories.map(lookOf)),
    insertParts(trx, bodies, 'done'),
    Promise.all(before.map(({ isKept }) => isKept)),
  ]);
  const isCurrent = areStill(epochs);
  const tookMs = performance.now() - startMs;
  for (const { shard, floor } of memories) {
    const oldest = older.find((body) => body.shard === shard);
    floor.looked({ tookMs, ids: oldest === undefined ? [] : [oldest.id], firstDay: oldest?.day ?? null });
  }
  const waiting = new Set(older.map(({ shard }) => shard));
  const busy = shards.filter((shard) => !held.includes(shard) || waiting.has(shard));
  busy.forEach(onBusy);
  // The bodies that are kept the usual way after all come first, and these behind them.
  if (busy.length > 0 || !isCurrent || areKept.includes(false)) throw new NotNowError();
}
