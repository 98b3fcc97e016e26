import type { ClaimedDelivery } from '../../engine/queue/claim.ts';
import type { DirectClaims } from '../../engine/queue/enqueue.ts';
import { tracing } from '../../platform/metrics/metrics.ts';
import { type IntakeTools, tracedItem } from './intake-tools.ts';
import { guessOf, ingestGuessed } from './one-turn.ts';
import { type Batch, MOST } from './plain-bodies.ts';
import { readAhead } from './read-ahead.ts';

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
export type UnderWay = { shards: readonly number[]; isUsual: boolean; isKept: Promise<boolean> };

/** `before`: earlier ones of the same shards. `onSent`: the statement is sent. */
export type Ways = { before: readonly UnderWay[]; waitMs: number; onSent: () => void };

/** Stores a batch with all that it leads to, in one statement; false where it has to be kept the usual way. Never rejects. */
export async function keepAndIngest(tools: IntakeTools, batch: Batch, ways: Ways): Promise<boolean> {
  const startMs = Date.now();
  try {
    // The statement waits for no lock of a shard, and which of two would get it first is up to the machine.
    const areKept = await Promise.all(ways.before.map(({ isKept }) => isKept));
    if (areKept.includes(false) || !(await ingest(tools, batch, ways))) return false;
  } catch (error) {
    tools.logger.debug({ err: error }, 'falling back to normal intake');
    return false;
  }
  tools.memory.stored();
  tracing.note?.({ name: 'intake', about: batch.items.map(tracedItem), startMs, endMs: Date.now() });
  for (const _ of batch.bodies) tools.onBody('done');
  return true;
}

/** Behind a look at what is not remembered; false where something is not as it was then. */
async function ingest(tools: IntakeTools, batch: Batch, { waitMs, onSent }: Ways): Promise<boolean> {
  const { database, memory } = tools;
  const ahead = await readAhead(database, memory, batch);
  if (ahead === null) return false;
  const guess = guessOf(memory, batch, { ...ahead, mostDeliveries: MOST.deliveries });
  if (guess === null) return false;
  const gather = setTimeout(onSent, GATHER_MS);
  const ways = { waitMs, onSent: batch.bodies.length >= MANY_BODIES ? onSent : () => undefined };
  const send = (claimer: DirectClaims | null) => ingestGuessed(database, guess, { ...ways, claimer });
  const isDone = await withClaims(tools, send).finally(() => clearTimeout(gather));
  if (!isDone) {
    for (const shard of batch.shards) memory.of(shard).doubt();
    memory.customers.forget(ahead.owned);
    return false;
  }
  for (const { owned, customer } of guess.items) if (customer.isNew) memory.customers.add(owned, customer);
  return true;
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
