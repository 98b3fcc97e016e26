import type { NumberOwner } from '../../accounts/accounts.ts';
import { type InboxBody, type ShardLook, takeNewBodies, takeNewBodiesByWaba } from '../../inbox/bodies.ts';
import { SHARDS } from '../../inbox/shards.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import { type QuarantinedPart, splitUpstreamBody, type UpstreamItem } from '../split/upstream-items.ts';
import { type InboxFloor, type Look, makeInboxFloor } from './inbox-floor.ts';
import { KnownCustomers } from './known-customers.ts';

const MIB = 1024 * 1024;

/** Bodies that are read per transaction: enough to share its cost, little enough to hold in memory. */
const BATCH = { bodies: 500, bytes: 4 * MIB };
/** Of a shard among several at least so many. */
const LEAST_OF_SHARD = 64;
const BACKLOG = { bodiesPerWaba: 100, bytesPerWaba: MIB, bytes: 8 * MIB };

/** What a look found in a shard. */
export type Found = {
  memory: ShardMemory;
  look: Look;
  bodies: InboxBody[];
  isAll: boolean;
  /** Where the next turn of WABAs begins if that is not all. */
  nextWabaId: string;
};

/** Reads what waits in shards, or the oldest of it. A shard with a backlog is read alone, WABA by WABA. */
export async function readBodies(trx: Transaction, shards: readonly ShardMemory[]): Promise<Found[]> {
  const [only] = shards;
  if (only === undefined) return [];
  const afterWabaId = only.pace.afterWabaId();
  if (shards.length === 1 && afterWabaId !== null) return [await readByWaba(trx, only, afterWabaId)];
  return await readById(trx, shards);
}

/** Where the next look into a shard begins. */
export function lookOf({ shard, floor }: Pick<ShardMemory, 'shard' | 'floor'>): ShardLook {
  return { shard, fromId: floor.from(), fromDay: floor.fromDay() };
}

async function readById(trx: Transaction, shards: readonly ShardMemory[]): Promise<Found[]> {
  const startMs = performance.now();
  const several = shards.length > 1 ? 2 : 1;
  const limits = {
    bodies: Math.min(BATCH.bodies, Math.max(LEAST_OF_SHARD, (several * BATCH.bodies) / shards.length)) | 0,
    bytes: (BATCH.bytes / shards.length) | 0,
  };
  const looks = shards.map(lookOf);
  const byShard = Map.groupBy(await takeNewBodies(trx, looks, limits), ({ shard }) => shard);
  const tookMs = performance.now() - startMs;
  return shards.map((memory) => {
    const bodies = byShard.get(memory.shard) ?? [];
    const look = { tookMs, ids: bodies.map(({ id }) => id), firstDay: bodies[0]?.day ?? null };
    const isAll = bodies.length < limits.bodies && bytesOf(bodies) < limits.bytes;
    return { memory, look, bodies, isAll, nextWabaId: '' };
  });
}

async function readByWaba(trx: Transaction, memory: ShardMemory, afterWabaId: string): Promise<Found> {
  const startMs = performance.now();
  const { wabas } = memory.pace.size();
  const limits = { ...BACKLOG, ...lookOf(memory), afterWabaId, wabas };
  const bodies = await takeNewBodiesByWaba(trx, limits);
  const look = { tookMs: performance.now() - startMs, ids: null, firstDay: null };
  const byWaba = Map.groupBy(bodies, (body) => body.wabaId);
  const isToTheEnd = byWaba.size < wabas && bytesOf(bodies) < BACKLOG.bytes;
  const isWhole = (own: InboxBody[]) =>
    own.length < BACKLOG.bodiesPerWaba && bytesOf(own) < BACKLOG.bytesPerWaba;
  const isAll = afterWabaId === '' && isToTheEnd && [...byWaba.values()].every(isWhole);
  return { memory, look, bodies, isAll, nextWabaId: isToTheEnd ? '' : (bodies.at(-1)?.wabaId ?? '') };
}

function bytesOf(bodies: readonly InboxBody[]): number {
  return bodies.reduce((sum, { body }) => sum + body.length, 0);
}

/** A body with what it holds. */
export type ReadBody = {
  body: InboxBody;
  items: UpstreamItem[];
  quarantined: QuarantinedPart[];
  unreadable: string | null;
};

/** What one transaction takes in of a body: some items that follow each other. */
export type BodyPortion = {
  read: ReadBody;
  items: readonly UpstreamItem[];
  /** Nothing of the body is left behind these. */
  isLast: boolean;
};

export function readBody(body: InboxBody): ReadBody {
  try {
    const split = splitUpstreamBody(body.body);
    const isLeft = leftItems(body);
    return { body, ...split, items: split.items.filter(isLeft), unreadable: null };
  } catch (error) {
    const unreadable = error instanceof Error ? error.message : 'unreadable body';
    return { body, items: [], quarantined: [], unreadable };
  }
}

/** Of a body that was taken in before, only what was quarantined then: the deduplication keys of the rest may be forgotten. */
function leftItems({ notes }: InboxBody): (item: UpstreamItem) => boolean {
  if (notes === null) return () => true;
  const noted = new Set(notes.map(({ path }) => path));
  return ({ path }) => {
    // A note may be about all of a value, or of the body.
    for (let part = path; part !== ''; part = part.slice(0, Math.max(0, part.lastIndexOf('.'))))
      if (noted.has(part)) return true;
    return noted.has('');
  };
}

/** How many items of a body were taken in by earlier transactions. Deduplication makes a wrong answer harmless. */
function takenBefore({ body: { partly }, items }: ReadBody): number {
  return partly === null ? 0 : items.findIndex(({ path }) => path === partly.until) + 1;
}

/**
 * Chooses what to take in of bodies that are too much for one transaction: of each WABA's bodies, in their order, as
 * much as its share of `budget` allows; what one does not need goes to the others. Each gets one item at least. A body is
 * cut only when it alone exceeds the share.
 */
export function sharePortions(
  bodies: readonly ReadBody[],
  budget: number,
  costOf: (item: UpstreamItem) => number,
): BodyPortion[] {
  const wabas = new Map<string, { cost: number; wholes: { portion: BodyPortion; cost: number }[] }>();
  for (const read of bodies) {
    const items = read.items.slice(takenBefore(read));
    const cost = items.reduce((sum, item) => sum + costOf(item), 0);
    const waba = wabas.get(read.body.wabaId) ?? { cost: 0, wholes: [] };
    waba.cost += cost;
    waba.wholes.push({ portion: { read, items, isLast: true }, cost });
    wabas.set(read.body.wabaId, waba);
  }
  const smallestFirst = [...wabas.values()].sort((a, b) => a.cost - b.cost);
  let left = budget;
  return smallestFirst.flatMap(({ wholes }, index) => {
    const share = left / (smallestFirst.length - index);
    const portions: BodyPortion[] = [];
    let spent = 0;
    for (const { portion, cost } of wholes) {
      if (spent + cost > share) {
        if (spent === 0) portions.push(cutPortion(portion, share, costOf));
        break;
      }
      spent += cost;
      portions.push(portion);
    }
    left -= Math.min(
      left,
      portions.reduce((sum, { items }) => sum + totalOf(items, costOf), 0),
    );
    return portions;
  });
}

function totalOf(items: readonly UpstreamItem[], costOf: (item: UpstreamItem) => number): number {
  return items.reduce((sum, item) => sum + costOf(item), 0);
}

/** As many of its first items as `share` allows, and one at least. */
function cutPortion(
  { read, items }: BodyPortion,
  share: number,
  costOf: (item: UpstreamItem) => number,
): BodyPortion {
  let spent = 0;
  const stop = items.findIndex((item, index) => {
    spent += costOf(item);
    return spent > share && index > 0;
  });
  return stop < 0 ? { read, items, isLast: true } : { read, items: items.slice(0, stop), isLast: false };
}

/** What intake keeps of one shard in one process from batch to batch. */
export type ShardMemory = {
  readonly shard: number;
  readonly pace: IntakePace;
  readonly floor: InboxFloor;
  /** Bodies that were read and are left for the next turn: reading one can cost more than taking a part of it in. */
  readonly kept: Map<string, ReadBody>;
  /** Of what is remembered; null before the first look. */
  epoch(): string | null;
  /** Forgets what is remembered unless it is of this epoch, which the database has now (`intakeEpochs`). */
  adopt(epoch: string): void;
  /** Something of it cannot be stored as it is. */
  refused(): void;
  /** Whether something of any shard was stored since something of this one was first refused: the system works. */
  othersAreStored(): boolean;
};

/** What intake keeps in one process. */
export type IntakeMemory = {
  /** Whose numbers are; unknown ones are asked for each time. */
  readonly owners: Map<string, NumberOwner>;
  readonly customers: KnownCustomers;
  of(shard: number): ShardMemory;
  /** Something of some shard was stored. */
  stored(): void;
};

/** The memory of a process that has only just started. */
export function makeIntakeMemory(makeFloor: () => InboxFloor = () => makeInboxFloor()): IntakeMemory {
  const owners: IntakeMemory['owners'] = new Map();
  const customers = new KnownCustomers();
  let storedCount = 0;
  const shards = SHARDS.map((shard): ShardMemory => {
    let known: string | null = null;
    let refusedAt: number | null = null;
    const floor = makeFloor();
    const kept: ShardMemory['kept'] = new Map();
    return {
      ...{ shard, floor, pace: makeIntakePace(), kept },
      epoch: () => known,
      adopt(epoch) {
        if (epoch === known) return;
        known = epoch;
        owners.clear();
        customers.clear();
        floor.reset();
        // Another process may have taken in a body since, and an erasure may have cut it.
        kept.clear();
      },
      refused() {
        refusedAt ??= storedCount;
      },
      othersAreStored() {
        const isSo = refusedAt !== null && storedCount > refusedAt;
        if (isSo) refusedAt = null;
        return isSo;
      },
    };
  });
  return {
    ...{ owners, customers },
    of(shard) {
      const memory = shards[shard];
      if (memory === undefined) throw new RangeError(`there is no shard ${shard}`);
      return memory;
    },
    stored: () => {
      storedCount += 1;
    },
  };
}

/**
 * Notes what a transaction relies on before it has the locks of the shards. The function returned gets the epochs of those
 * that it could lock: it adopts them, and returns whether what was noted is still so. Another transaction of the process
 * may have adopted them meanwhile.
 */
export function noteEpochs(
  memories: readonly ShardMemory[],
): (epochs: ReadonlyMap<number, string>) => boolean {
  const noted = memories.map((memory) => ({ memory, epoch: memory.epoch() }));
  return (epochs) => {
    let areStill = true;
    for (const { memory, epoch } of noted) {
      const current = epochs.get(memory.shard);
      if (current === undefined) continue;
      memory.adopt(current);
      if (current !== epoch) areStill = false;
    }
    return areStill;
  };
}

/** The most that a transaction takes in. `cost` counts items and their deliveries, so it bounds what is written. */
const MOST = { cost: 5_000, wabas: 100 };

/**
 * Other bodies of the shard wait as long as a turn takes. A slow machine takes smaller steps, but not so small that
 * beginning and ending them is most of the work.
 */
const SLOW_TURN_MS = 300;
const QUICK_TURN_MS = 150;
const LEAST_COST_WHEN_SLOW = 500;

/** What is left once the transaction under way is committed. */
type Left = { isNothing: boolean; nextWabaId: string };

/**
 * How much the next transaction takes in. As long as everything that waits fits into one, the oldest bodies are taken
 * whosever they are. With more, WABAs take turns, so that no WABA stands behind another's backlog. A transaction that
 * fails is tried again with half of it, and with other WABAs first where there are any.
 */
type IntakePace = {
  size(): { cost: number; wabas: number };
  /** The turn is one of WABAs and begins behind this one; null while there is no backlog, and the shard in no trouble. */
  afterWabaId(): string | null;
  /** Tells what is left if the transaction under way succeeds. */
  taking(left: Left): void;
  done(durationMs: number): void;
  failed(): void;
  /** The next turn is of several WABAs, if there are. */
  takeTurns(): void;
};

export function makeIntakePace(): IntakePace {
  let size = MOST;
  let afterWabaId: string | null = null;
  let taking: Left | null = null;
  const scale = (factor: number, leastCost: number) => {
    const scaled = (value: number, least: number, most: number) =>
      Math.min(most, Math.max(least, Math.floor(value * factor)));
    size = {
      cost: scaled(size.cost, Math.min(leastCost, size.cost), MOST.cost),
      wabas: scaled(size.wabas, 1, MOST.wabas),
    };
  };
  return {
    size: () => size,
    afterWabaId: () => afterWabaId,
    taking: (left) => {
      taking = left;
    },
    done: (durationMs) => {
      if (taking === null) return;
      if (durationMs > SLOW_TURN_MS) scale(0.5, LEAST_COST_WHEN_SLOW);
      else if (durationMs < QUICK_TURN_MS) scale(2, 1);
      afterWabaId = taking.isNothing ? null : taking.nextWabaId;
      taking = null;
    },
    failed: () => {
      scale(0.5, 1);
      afterWabaId = taking?.nextWabaId ?? '';
      taking = null;
    },
    takeTurns: () => {
      afterWabaId = '';
      taking = null;
    },
  };
}
