import { tracing } from '../../platform/metrics/metrics.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import { intakeEpochs, tryIntakeLocks } from '../../platform/postgres/database.ts';
import { findOldestBodies, insertTakenIn, type NewBody, newBodies, shardOf } from '../inbox.ts';
import { type Owned, splitUpstreamBody, type UpstreamItem } from '../split/upstream-items.ts';
import type { ShardMemory } from './backlog.ts';
import { commitItems, type KnownOwners, sortItems } from './commit-items.ts';
import { type IntakeTools, tracedItem } from './intake-batch.ts';
import type { IntakeLoop } from './intake-loop.ts';

/** The sender waits meanwhile: what takes longer is kept as it is and taken in later. */
const PATIENCE_MS = 250;

/**
 * More than that waits already when one of these transactions ends: then intake in larger groups, beside the ingress,
 * takes in more in a second.
 */
const MOST = { bodies: 64, items: 200, bytes: 1024 * 1024 };

/**
 * How long bodies wait for a transaction beside the ingress that takes in what came before them. Going after it in
 * turn, one stall would be enough for all that follows to be stored first and taken in then, with twice the work.
 */
const HOLD_MS = 50;

/** After an attempt that took too long. */
const REST_MS = 1_000;

/** An attempt to keep bodies and take them in, in the transaction that is acknowledged. */
type DirectAttempt = {
  /** To be kept the usual way. */
  usual: readonly Buffer[];
  tried: readonly Buffer[];
  /**
   * Whether those that were tried are committed. Otherwise it was not possible or not in time, and they are to be kept the
   * usual way; what is committed all the same then counts once, by its deduplication keys.
   */
  isKept: Promise<boolean>;
};

/** Tries bodies whose shards have nothing else to do. */
export type DirectIntake = (bodies: readonly Buffer[]) => DirectAttempt;

/** For a process that is both ingress and worker. */
export function makeDirectIntake(
  tools: IntakeTools,
  loop: Pick<IntakeLoop, 'areIdle' | 'whenIdle'>,
  patienceMs = PATIENCE_MS,
): DirectIntake {
  let restUntilMs = 0;
  // Where more comes than is taken in nothing is gained by holding.
  const overrun = new Set<number>();
  const isPossible = (shard: number) => {
    if (loop.areIdle([shard])) overrun.delete(shard);
    return !overrun.has(shard);
  };
  const keep = async (batch: Batch) => {
    if (!(await loop.whenIdle(batch.shards, HOLD_MS))) {
      for (const shard of batch.shards) if (!loop.areIdle([shard])) overrun.add(shard);
      return false;
    }
    const startMs = performance.now();
    const timer = Promise.withResolvers<'late'>();
    const timeout = setTimeout(() => timer.resolve('late'), patienceMs);
    const outcome = await Promise.race([keepAndTakeIn(tools, batch, patienceMs), timer.promise]);
    clearTimeout(timeout);
    if (outcome === 'late' || performance.now() - startMs > patienceMs)
      restUntilMs = performance.now() + REST_MS;
    return outcome === 'done';
  };
  return (bodies) => {
    const allUsual = { usual: bodies, tried: [], isKept: Promise.resolve(true) };
    if (performance.now() < restUntilMs) return allUsual;
    const parts = new Map(bodies.map((body) => [body, newBodies([body])]));
    const partsOf = (body: Buffer) => parts.get(body) ?? [];
    const tried = bodies.filter((body) => partsOf(body).every(({ shard }) => isPossible(shard)));
    const batch = tried.length === 0 ? null : readBatch(tried, tried.flatMap(partsOf));
    if (batch === null) return allUsual;
    const isTried = new Set(tried);
    return { usual: bodies.filter((body) => !isTried.has(body)), tried, isKept: keep(batch) };
  };
}

type Batch = { bodies: NewBody[]; items: UpstreamItem[]; shards: number[] };

/** Null for what is not plain: too much, unreadable, with parts that become no event. */
function readBatch(bodies: readonly Buffer[], parts: NewBody[]): Batch | null {
  const bytes = bodies.reduce((sum, body) => sum + body.length, 0);
  if (bodies.length > MOST.bodies || bytes > MOST.bytes) return null;
  const items: UpstreamItem[] = [];
  for (const { body } of parts) {
    const split = splitOrNull(body);
    if (split === null || split.quarantined.length > 0) return null;
    items.push(...split.items);
  }
  if (items.length > MOST.items) return null;
  return { bodies: parts, items, shards: [...new Set(parts.map(({ shard }) => shard))] };
}

function splitOrNull(body: Buffer): ReturnType<typeof splitUpstreamBody> | null {
  try {
    return splitUpstreamBody(body);
  } catch {
    return null;
  }
}

/** Something has to be taken in before, or otherwise. */
class NotNowError extends Error {}

async function keepAndTakeIn(tools: IntakeTools, batch: Batch, waitMs: number): Promise<'done' | 'not now'> {
  const claims = tools.directClaims();
  const startMs = Date.now();
  try {
    const claimed = await tools.database.transaction(async (trx) => {
      const memories = batch.shards.map((shard) => tools.memory.of(shard));
      const known = { owners: tools.memory.owners, held: new Set(batch.shards) };
      const owned = ownedOf(batch.items, known);
      const mayWrite = prepare(trx, memories, batch.bodies, waitMs);
      mayWrite.catch(() => undefined);
      if (owned !== null) return await commitItems(trx, owned, claims, mayWrite);
      await mayWrite;
      const sorted = await sortItems(trx, batch.items, known);
      if (sorted.reasons.size > 0) throw new NotNowError();
      return await commitItems(trx, sorted.owned, claims);
    });
    claims?.carry(claimed);
  } catch (error) {
    claims?.cancel();
    if (!(error instanceof NotNowError))
      tools.logger.debug({ err: error }, 'bodies are kept first and taken in then');
    return 'not now';
  }
  tools.memory.stored();
  if (batch.items.length > 0)
    tracing.note?.({ name: 'intake', about: batch.items.map(tracedItem), startMs, endMs: Date.now() });
  for (const _ of batch.bodies) tools.onBody('done');
  return 'done';
}

/** Null where it has to be asked whose a number is. */
function ownedOf(items: readonly UpstreamItem[], { owners, held }: KnownOwners): Owned[] | null {
  const owned: Owned[] = [];
  for (const item of items) {
    const owner = owners.get(item.phoneNumberId);
    if (owner === undefined || owner.removed || !held.has(shardOf(owner.wabaId))) return null;
    owned.push({ item, wabaId: owner.wabaId, tenantId: owner.tenantId });
  }
  return owned;
}

/** Stores the bodies as taken in. Resolves when they are the next of their shards and what is remembered is still so. */
async function prepare(
  trx: Transaction,
  memories: readonly ShardMemory[],
  bodies: readonly NewBody[],
  waitMs: number,
): Promise<void> {
  const remembered = memories.map((memory) => memory.epoch());
  const looks = memories.map(({ shard, floor }) => ({ shard, fromId: floor.from() }));
  const [held, epochs, before] = await Promise.all([
    tryIntakeLocks(
      trx,
      memories.map(({ shard }) => shard),
      waitMs,
    ),
    intakeEpochs(trx),
    findOldestBodies(trx, looks),
    insertTakenIn(trx, bodies),
  ]);
  const isCurrent = memories.every(({ shard }, index) => epochs.get(shard) === remembered[index]);
  if (held.length < memories.length || before.length > 0 || !isCurrent) throw new NotNowError();
}
