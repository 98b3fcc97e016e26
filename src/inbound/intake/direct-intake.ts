import { findOldestBodies, type NewBody, type SignedBody } from '../../inbox/bodies.ts';
import { intakeEpochs } from '../../inbox/intake-lock.ts';
import { SHARDS, shardOf } from '../../inbox/shards.ts';
import { tracing } from '../../platform/metrics/metrics.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import type { ClaimedDelivery } from '../../queue/claim.ts';
import type { DirectClaims } from '../../queue/enqueue.ts';
import { insertTakenIn, type KeepAtOnce, newBodies } from '../inbox.ts';
import { tryIntakeLocks } from '../locks.ts';
import { type Owned, splitUpstreamBody, type UpstreamItem } from '../split/upstream-items.ts';
import { lookOf, noteEpochs, type ShardMemory } from './backlog.ts';
import { commitItems, type KnownOwners, sortItems } from './commit-items.ts';
import { type IntakeTools, tracedItem } from './intake-batch.ts';
import type { IntakeLoop } from './intake-loop.ts';
import { type ItemOrigins, originsOf, refusalOf } from './item-origins.ts';
import { isPlain, type PlainItem } from './known-customers.ts';
import { guessOf, ingestGuessed } from './one-turn.ts';
import { readAhead } from './read-ahead.ts';

/** The sender waits meanwhile: what takes longer is kept as it is and taken in later. */
const PATIENCE_MS = 250;

/**
 * More than that waits already when one of these transactions ends: then intake in larger groups, beside the ingress,
 * takes in more in a second.
 */
const MOST = { bodies: 64, items: 200, bytes: 1024 * 1024, deliveries: 500 };

/**
 * What arrives beside one statement of few bodies shares the next one, unless it takes longer than that: bodies of other
 * shards must not wait for it. Beside one of many bodies the next batch is prepared at once.
 */
const GATHER_MS = 4;
const MANY_BODIES = 8;

/**
 * A shard rests for so many times what an attempt in vain took: one that took too long is written a second time, one beside
 * another process that has the shard is undone. A WABA does not lose the fast way for more than a second by one slow moment.
 */
const REST_TIMES = 10;
const LONGEST_REST_MS = 1_000;

/** For a process that is both ingress and worker. */
export function makeDirectIntake(tools: IntakeTools, loop: IdleLoop, patienceMs = PATIENCE_MS): KeepAtOnce {
  const intake = new IntakeBesideIngress(tools, loop, patienceMs);
  return (bodies, onSent, stored) => intake.attempt(bodies, onSent, stored);
}

/** Bodies of a shard that the loop works on would be written, and undone because older ones wait. */
type IdleLoop = Pick<IntakeLoop, 'isIdle'>;

class IntakeBesideIngress {
  readonly #tools: IntakeTools;
  readonly #loop: IdleLoop;
  readonly #patienceMs: number;
  readonly #restsUntilMs = new Map<number, number>();
  readonly #underWay = new Set<UnderWay>();

  constructor(tools: IntakeTools, loop: IdleLoop, patienceMs: number) {
    this.#tools = tools;
    this.#loop = loop;
    this.#patienceMs = patienceMs;
  }

  attempt(
    bodies: readonly SignedBody[],
    onSent: () => void,
    stored?: Promise<unknown>,
  ): ReturnType<KeepAtOnce> {
    // More bodies than one of these transactions takes are not even read.
    const { plain, left } =
      bodies.length > MOST.bodies ? { plain: [], left: SHARDS } : this.#readPlain(bodies);
    const isTried = new Set(plain.map(({ signed }) => signed));
    const usual = bodies.filter((body) => !isTried.has(body));
    const isKept = Promise.resolve(false);
    if (left.length > 0 && stored !== undefined)
      this.#note({ shards: left, isUsual: true, isOneStatement: false, isKept }, stored);
    if (plain.length === 0) return { usual, tried: [], isKept: Promise.resolve(true) };
    const batch = batchOf(plain);
    const isOfSame = ({ shards }: UnderWay) => shards.some((shard) => batch.shards.includes(shard));
    const before = [...this.#underWay].filter(isOfSame);
    const own: UnderWay = { shards: batch.shards, isUsual: false, isOneStatement: false, isKept };
    const onOneStatement = () => {
      own.isOneStatement = true;
    };
    const attempt = this.#keep(batch, { before, onSent, onOneStatement });
    own.isKept = attempt.isKept.then((kept) => {
      own.isUsual = !kept;
      return kept;
    });
    this.#note(own, Promise.all([stored ?? own.isKept, attempt.ended]));
    return { usual, tried: [...isTried], isKept: own.isKept };
  }

  #note(bodies: UnderWay, until: Promise<unknown>): void {
    this.#underWay.add(bodies);
    void until.finally(() => this.#underWay.delete(bodies));
  }

  /**
   * Of these bodies those that can be taken in at once. One that is not plain (too much, unreadable, with parts that become
   * no event) is left out, and so is what comes behind it in its shards, which are `left`.
   */
  #readPlain(bodies: readonly SignedBody[]): { plain: PlainBody[]; left: readonly number[] } {
    const plain: PlainBody[] = [];
    const left = new Set<number>();
    const room = { ...MOST };
    for (const signed of bodies) {
      const parts = newBodies([signed]);
      const isFree = parts.every(({ shard }) => this.#isPossible(shard) && !left.has(shard));
      const read = isFree ? readParts(parts) : null;
      if (read !== null && takeRoom(room, this.#sizeOf(signed, read))) plain.push({ signed, parts: read });
      else for (const { shard } of parts) left.add(shard);
    }
    return { plain, left: [...left] };
  }

  #sizeOf({ body }: SignedBody, parts: PlainBody['parts']): Size {
    const size = { bodies: 1, items: 0, bytes: body.length, deliveries: 0 };
    for (const { part, items } of parts) {
      size.items += items.length;
      size.deliveries += items.length * this.#tools.memory.customers.subscribersOf(part.wabaId).length;
    }
    return size;
  }

  #isPossible(shard: number): boolean {
    const isUsual = [...this.#underWay].some((one) => one.isUsual && one.shards.includes(shard));
    const rests = performance.now() < (this.#restsUntilMs.get(shard) ?? 0);
    return !isUsual && !rests && this.#loop.isIdle(shard);
  }

  /** What takes too long goes on after it counts as not kept, until `ended`. */
  #keep(batch: Batch, given: Pick<Ways, 'before' | 'onSent' | 'onOneStatement'>) {
    const startMs = performance.now();
    const late = Promise.withResolvers<'late'>();
    const timeout = setTimeout(() => late.resolve('late'), this.#patienceMs);
    const busy: number[] = [];
    const ways: Ways = {
      ...{ ...given, waitMs: this.#patienceMs },
      onBusy: (shard) => busy.push(shard),
    };
    const ended = keepAndTakeIn(this.#tools, batch, ways);
    const isKept = Promise.race([ended, late.promise]).then((outcome) => {
      clearTimeout(timeout);
      const nowMs = performance.now();
      const tookMs = nowMs - startMs;
      for (const shard of tookMs > this.#patienceMs ? batch.shards : busy)
        this.#restsUntilMs.set(shard, nowMs + Math.min(LONGEST_REST_MS, REST_TIMES * tookMs));
      return outcome === 'done';
    });
    return { isKept, ended };
  }
}

type Size = typeof MOST;

/** Whether there is room for so much more; then it is taken. */
function takeRoom(room: Size, size: Size): boolean {
  const names = ['bodies', 'items', 'bytes', 'deliveries'] as const;
  if (names.some((name) => size[name] > room[name])) return false;
  for (const name of names) room[name] -= size[name];
  return true;
}

/**
 * Bodies that are not stored yet. `isUsual`: they are being kept the usual way, and what comes behind them in their shards is
 * kept behind them.
 */
type UnderWay = {
  shards: readonly number[];
  isUsual: boolean;
  isOneStatement: boolean;
  isKept: Promise<boolean>;
};

type Batch = { bodies: NewBody[]; items: UpstreamItem[]; origins: ItemOrigins; shards: number[] };

/** A body, what of it is of which WABA, and what that holds. */
type PlainBody = { signed: SignedBody; parts: { part: NewBody; items: UpstreamItem[] }[] };

function readParts(parts: readonly NewBody[]): PlainBody['parts'] | null {
  const read: PlainBody['parts'] = [];
  for (const part of parts) {
    const split = splitOrNull(part.body);
    if (split === null || split.quarantined.length > 0) return null;
    // Changes in other fields are rare, and further work depends on them.
    if (split.items.some(({ kind }) => kind === 'upstream')) return null;
    read.push({ part, items: split.items });
  }
  return read;
}

function batchOf(plain: readonly PlainBody[]): Batch {
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

function splitOrNull(body: Buffer): ReturnType<typeof splitUpstreamBody> | null {
  try {
    return splitUpstreamBody(body);
  } catch {
    return null;
  }
}

/** Something has to be taken in before, or otherwise. */
class NotNowError extends Error {}

/** `before`: earlier ones of the same shards; `onBusy` gets the shards that another process works on. */
type Ways = {
  before: readonly UnderWay[];
  waitMs: number;
  onBusy: (shard: number) => void;
  onSent: () => void;
  onOneStatement: () => void;
};

async function keepAndTakeIn(tools: IntakeTools, batch: Batch, given: Ways): Promise<'done' | 'not now'> {
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

/** Null where it has to be asked whose a number is, or where an item is refused. */
function ownedOf(items: readonly UpstreamItem[], { owners, held, origins }: KnownOwners): Owned[] | null {
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

/**
 * Stores the bodies as taken in. Resolves when they are the next of their shards and what is remembered is still so;
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
    insertTakenIn(trx, bodies),
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
  // What is kept the usual way after all comes first, and these behind it.
  if (busy.length > 0 || !isCurrent || areKept.includes(false)) throw new NotNowError();
}
