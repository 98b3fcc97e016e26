import type { InboxOutcome } from '../../engine/inbox/bodies.ts';
import type { ClaimedDelivery } from '../../engine/queue/claim.ts';
import type { DirectClaims } from '../../engine/queue/enqueue.ts';
import { tracing } from '../../platform/metrics/metrics.ts';
import { LastStatements, type Transaction } from '../../platform/postgres/database.ts';
import { isDataError, isLockTimeout } from '../../platform/postgres/error-class.ts';
import type { UpstreamItem } from '../split/upstream-items.ts';
import { takePortions } from './backlog.ts';
import { finish } from './body-outcomes.ts';
import { commitItems } from './commit-items.ts';
import { type IntakeTools, tracedItem } from './intake-tools.ts';
import { type KnownOwners, sortItems } from './owners.ts';
import type { ShardMemory } from './shard-memory.ts';

/** Looking for an item that cannot be stored takes a savepoint per group, so fewer are looked through at a time. */
const COST_IN_PIECES = 200;

/** Nothing of several bodies could be stored: that lies in the system, whatever the errors say. */
class NothingStorableError extends Error {
  constructor(bodies: number, cause: unknown) {
    super(`none of the items of ${bodies} upstream bodies can be stored`, { cause });
    this.name = 'NothingStorableError';
  }
}

/**
 * Ingests bodies that wait in these shards, all in one transaction; returns the shards in which more may be waiting.
 * When the data is at fault, or a lock is held for long, each of several shards is to be ingested alone. A shard that is
 * alone is ingested again in groups of items, until the items that cannot be stored are found and quarantined.
 */
export async function takeInShards(tools: IntakeTools, shards: readonly number[]): Promise<number[]> {
  const memories = shards.map((shard) => tools.memory.of(shard));
  const startMs = performance.now();
  try {
    const taken = await takeInAtOnceOrInPieces(tools, memories);
    for (const { pace } of memories) pace.done(performance.now() - startMs);
    for (const { state } of taken.outcomes) if (state !== 'new') tools.onBody(state);
    return taken.more;
  } catch (error) {
    for (const { pace } of memories) {
      if (error instanceof NothingStorableError) pace.takeTurns();
      else pace.failed();
    }
    throw error;
  }
}

async function takeInAtOnceOrInPieces(tools: IntakeTools, shards: readonly ShardMemory[]): Promise<Taken> {
  const claims = tools.directClaims();
  try {
    const taken = await takeInTogether(tools, shards, claims);
    claims?.carry(taken.claimed);
    return taken;
  } catch (error) {
    claims?.cancel();
    const isRefused = isDataError(error);
    if (isRefused) for (const memory of shards) memory.refused();
    const [only, ...others] = shards;
    if (others.length > 0 && (isRefused || isLockTimeout(error))) {
      for (const { pace } of shards) pace.takeTurns();
      return { claimed: [], outcomes: [], more: shards.map(({ shard }) => shard) };
    }
    if (only === undefined || !isRefused) throw error;
    tools.logger.warn({ err: error }, 'an upstream body cannot be stored: isolating the item');
    return await takeInPieces(tools, only);
  }
}

type Taken = { claimed: ClaimedDelivery[]; outcomes: InboxOutcome[]; more: number[] };

async function takeInTogether(
  { database, memory }: IntakeTools,
  shards: readonly ShardMemory[],
  claims: DirectClaims | null,
): Promise<Taken> {
  const startMs = Date.now();
  let items: readonly UpstreamItem[] = [];
  const taken = await database.transaction(async (trx) => {
    const { portions, known, more, ...taking } = await takePortions(trx, memory, shards);
    if (portions.length === 0) return { claimed: [], outcomes: [], more };
    items = taking.items;
    const { owned, reasons } = await sortItems(trx, items, known);
    const finished = finish(trx, portions, reasons);
    const [committing, outcomes] = await Promise.all([commitItems(trx, owned, claims), finished]);
    return new LastStatements(committing.answers.then((claimed) => ({ claimed, outcomes, more })));
  });
  if (taken.outcomes.length > 0) memory.stored();
  if (items.length > 0)
    tracing.note?.({ name: 'intake', about: items.map(tracedItem), startMs, endMs: Date.now() });
  return taken;
}

/** The same work with one savepoint per group of items, halving a group that fails. */
async function takeInPieces({ database, memory, logger }: IntakeTools, own: ShardMemory): Promise<Taken> {
  const failures: Failure[] = [];
  let storedAny = false;
  const taken = await database.transaction(async (trx) => {
    const { portions, items, known, more } = await takePortions(trx, memory, [own], COST_IN_PIECES);
    const reasons = new Map<UpstreamItem, string>();
    await commitOrHalve(trx, items, known, failures, reasons);
    storedAny = failures.length < items.length;
    const bodies = portions.filter((portion) => portion.items.length > 0).length;
    // One body may be bad as a whole. A WABA with several of them waits until another's goes through.
    if (bodies > 1 && !storedAny && !own.othersAreStored())
      throw new NothingStorableError(bodies, failures[0]?.error);
    return { claimed: [], outcomes: await finish(trx, portions, reasons), more };
  });
  if (storedAny) memory.stored();
  for (const { error, path } of failures) {
    logger.error({ err: error, path }, 'an upstream item cannot be stored; its body is kept');
  }
  return taken;
}

type Failure = { error: unknown; path: string };

async function commitOrHalve(
  trx: Transaction,
  items: readonly UpstreamItem[],
  known: KnownOwners,
  failures: Failure[],
  reasons: Map<UpstreamItem, string>,
): Promise<void> {
  if (items.length === 0) return;
  try {
    await trx.transaction(async (savepoint) => {
      const sorted = await sortItems(savepoint, items, known);
      await (await commitItems(savepoint, sorted.owned, null)).answers;
      for (const [item, reason] of sorted.reasons) reasons.set(item, reason);
    });
  } catch (error) {
    if (!isDataError(error)) throw error;
    const [only] = items;
    if (items.length === 1 && only !== undefined) {
      failures.push({ error, path: only.path });
      reasons.set(only, 'failed');
      return;
    }
    const half = items.length >> 1;
    await commitOrHalve(trx, items.slice(0, half), known, failures, reasons);
    await commitOrHalve(trx, items.slice(half), known, failures, reasons);
  }
}
