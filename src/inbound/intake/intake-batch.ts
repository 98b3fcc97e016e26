import { askForNumbers, askForNumbersAgain } from '../../accounts/followed-numbers.ts';
import { countEndpoints } from '../../endpoints/endpoint-settings.ts';
import { MAX_ENDPOINTS } from '../../endpoints/endpoints.ts';
import { finishBodies, type InboxBody, type InboxOutcome, type QuarantineNote } from '../../inbox/bodies.ts';
import { intakeEpochs } from '../../inbox/intake-lock.ts';
import { countQuarantined, type QuarantineCount } from '../../inbox/quarantine-counts.ts';
import { AWAITS_NUMBER, insertWaitingBodies } from '../../inbox/waiting-bodies.ts';
import type { Logger } from '../../platform/logger.ts';
import { type TracedEvent, tracing } from '../../platform/metrics/metrics.ts';
import { type Database, LastStatements, type Transaction } from '../../platform/postgres/database.ts';
import { isDataError, isLockTimeout } from '../../platform/postgres/error-class.ts';
import type { ClaimedDelivery } from '../../queue/claim.ts';
import type { DirectClaims } from '../../queue/enqueue.ts';
import { tryIntakeLocks } from '../locks.ts';
import type { UpstreamItem } from '../split/upstream-items.ts';
import {
  type BodyPortion,
  type Found,
  type IntakeMemory,
  noteEpochs,
  type ReadBody,
  readBodies,
  readBody,
  type ShardMemory,
  sharePortions,
} from './backlog.ts';
import { commitItems, type KnownOwners, sortItems } from './commit-items.ts';
import { type ItemOrigins, originsOf } from './item-origins.ts';

/** Looking for an item that cannot be stored takes a savepoint per group, so fewer are looked through at a time. */
const COST_IN_PIECES = 200;

export type IntakeTools = {
  database: Database;
  memory: IntakeMemory;
  /** Claims for this process's session, when there is one. */
  directClaims: () => DirectClaims | null;
  logger: Logger;
  /** For metrics: told of each body once what was made of it is committed. */
  onBody: (state: Exclude<InboxOutcome['state'], 'new'>) => void;
};

/** Nothing of several bodies could be stored: that lies in the system, whatever the errors say. */
class NothingStorableError extends Error {
  constructor(bodies: number, cause: unknown) {
    super(`none of the items of ${bodies} upstream bodies can be stored`, { cause });
    this.name = 'NothingStorableError';
  }
}

/**
 * Takes in bodies that wait in these shards, all in one transaction; returns the shards in which more may be waiting.
 * When the data is at fault, or a lock is held for long, each of several shards is to be taken in alone. A shard that is
 * alone is taken in again in groups of items, until the items that cannot be stored are found and quarantined.
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

/** What one transaction takes in, the shards whose locks it holds, and those of them in which more may be waiting. */
type Portions = { portions: BodyPortion[]; held: ReadonlySet<number>; more: number[] };

async function takeInTogether(
  { database, memory }: IntakeTools,
  shards: readonly ShardMemory[],
  claims: DirectClaims | null,
): Promise<Taken> {
  const startMs = Date.now();
  let items: readonly UpstreamItem[] = [];
  const taken = await database.transaction(async (trx) => {
    const { portions, held, more } = await takePortions(trx, shards, costOf(shards));
    if (portions.length === 0) return { claimed: [], outcomes: [], more };
    items = portions.flatMap((portion) => portion.items);
    const known = { owners: memory.owners, held, origins: originsOfPortions(portions) };
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

/** An item as traces know it. */
export function tracedItem({ kind, wabaId, eventId }: UpstreamItem): TracedEvent {
  return { type: kind, wabaId, eventId };
}

function originsOfPortions(portions: readonly BodyPortion[]): ItemOrigins {
  return originsOf(portions.map(({ read: { body }, items }) => ({ body, items })));
}

function costOf(shards: readonly ShardMemory[]): number {
  return Math.min(...shards.map(({ pace }) => pace.size().cost));
}

/** Nothing of shards that another process is taking in. */
async function takePortions(
  trx: Transaction,
  shards: readonly ShardMemory[],
  budget: number,
): Promise<Portions> {
  const wanted = shards.map(({ shard }) => shard);
  const areStill = noteEpochs(shards);
  const [locked, epochs, looked] = await Promise.all([
    tryIntakeLocks(trx, wanted),
    intakeEpochs(trx),
    readBodies(trx, shards),
  ]);
  const held = new Set(locked);
  const own = shards.filter(({ shard }) => held.has(shard));
  const found = (areStill(epochs) ? looked : await readBodies(trx, own)).filter(({ memory }) =>
    own.includes(memory),
  );
  const read = found.flatMap(({ memory: { kept }, bodies }) =>
    bodies.map((body) => ({ ...(kept.get(body.id) ?? readBody(body)), body })),
  );
  const portions = await affordable(trx, read, budget);
  const finished = new Set(portions.filter(({ isLast }) => isLast).map((portion) => portion.read.body.id));
  for (const one of found) keepTheRest(one, read, finished);
  const isLeft = ({ bodies, isAll }: Found) => !isAll || bodies.some(({ id }) => !finished.has(id));
  return { portions, held, more: found.filter(isLeft).map(({ memory }) => memory.shard) };
}

/** Notes what a shard's next turn goes on with, if this one is committed. */
function keepTheRest(
  { memory: { shard, pace, floor, kept }, look, bodies, isAll, nextWabaId }: Found,
  read: readonly ReadBody[],
  finished: ReadonlySet<string>,
): void {
  floor.looked(look);
  kept.clear();
  for (const one of read)
    if (one.body.shard === shard && !finished.has(one.body.id)) kept.set(one.body.id, one);
  const isNothing = isAll && bodies.every(({ id }) => finished.has(id));
  pace.taking({ isNothing, nextWabaId });
}

/** As much as `budget` allows. Who receives it is asked only where it could be too much. */
async function affordable(
  trx: Transaction,
  read: readonly ReadBody[],
  budget: number,
): Promise<BodyPortion[]> {
  const items = read.flatMap((one) => one.items);
  const canBeTooMuch = items.length * MAX_COST > budget;
  const endpoints = canBeTooMuch
    ? await countEndpoints(trx, [...new Set(items.map(({ wabaId }) => wabaId))])
    : null;
  const costOfItem = (item: UpstreamItem) =>
    endpoints === null ? 0 : 1 + (endpoints.get(item.wabaId) ?? 0) * eventsOf(item);
  return sharePortions(read, budget, costOfItem);
}

/** A cart is a message and an order. */
function eventsOf(item: UpstreamItem): number {
  return item.kind === 'message' && item.order !== null ? 2 : 1;
}

const MAX_COST = 1 + 2 * MAX_ENDPOINTS;

/** The same work with one savepoint per group of items, halving a group that fails. */
async function takeInPieces({ database, memory, logger }: IntakeTools, own: ShardMemory): Promise<Taken> {
  const failures: Failure[] = [];
  let storedAny = false;
  const taken = await database.transaction(async (trx) => {
    const { portions, held, more } = await takePortions(trx, [own], Math.min(COST_IN_PIECES, costOf([own])));
    const items = portions.flatMap((portion) => portion.items);
    const reasons = new Map<UpstreamItem, string>();
    const known = { owners: memory.owners, held, origins: originsOfPortions(portions) };
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

async function finish(
  trx: Transaction,
  portions: readonly BodyPortion[],
  reasons: ReadonlyMap<UpstreamItem, string>,
): Promise<InboxOutcome[]> {
  const outcomes = portions.map((portion) => outcomeOf(portion, reasons));
  await finishBodies(trx, outcomes);
  await countQuarantined(trx, countsOf(portions, reasons));
  const taken = portions.filter(({ isLast }) => isLast).map(({ read }) => read);
  await askUpstream(trx, taken, withEarlier(taken, reasons));
  return outcomes;
}

/** With those of the items that earlier transactions took in. */
function withEarlier(
  taken: readonly ReadBody[],
  reasons: ReadonlyMap<UpstreamItem, string>,
): ReadonlyMap<UpstreamItem, string> {
  const earlier = taken.flatMap(({ body: { partly }, items }) => {
    const noted = new Map(partly?.notes.map(({ path, reason }) => [path, reason]));
    const reasonOf = (item: UpstreamItem) => noted.get(item.path);
    return noted.size === 0 ? [] : items.map((item) => [item, reasonOf(item)] as const);
  });
  const known = earlier.flatMap(([item, reason]) => (reason === undefined ? [] : [[item, reason] as const]));
  return known.length === 0 ? reasons : new Map([...reasons, ...known]);
}

function outcomeOf(
  { read, items, isLast }: BodyPortion,
  reasons: ReadonlyMap<UpstreamItem, string>,
): InboxOutcome {
  const { day, id, partly } = read.body;
  if (read.unreadable !== null) {
    return { day, id, state: 'failed', notes: [{ path: '', reason: read.unreadable }], partly: null };
  }
  const ofItems = [...(partly?.notes ?? []), ...items.flatMap((item) => noteOf(item, reasons))];
  if (!isLast) {
    const until = items.at(-1)?.path ?? '';
    return { day, id, state: 'new', notes: read.body.notes, partly: { until, notes: ofItems } };
  }
  const notes = [...read.quarantined.map(({ path, reason }) => ({ path, reason })), ...ofItems];
  return { day, id, state: stateOf(notes, ofItems), notes, partly: null };
}

function stateOf(
  notes: readonly QuarantineNote[],
  ofItems: readonly QuarantineNote[],
): InboxOutcome['state'] {
  const has = (wanted: string) => ofItems.some(({ reason }) => reason === wanted);
  if (has('failed')) return 'failed';
  if (has(AWAITS_NUMBER)) return 'waiting';
  return notes.length > 0 ? 'quarantined' : 'done';
}

function noteOf(item: UpstreamItem, reasons: ReadonlyMap<UpstreamItem, string>): QuarantineNote[] {
  const reason = reasons.get(item);
  return reason === undefined ? [] : [{ path: item.path, reason }];
}

/**
 * Beyond the known reasons, upstream chooses the words: a bounded number of them may become rows. What is quarantined a
 * second time for the same reason was counted the first time.
 */
function countsOf(
  portions: readonly BodyPortion[],
  reasons: ReadonlyMap<UpstreamItem, string>,
): QuarantineCount[] {
  const counts = new Map<string, QuarantineCount>();
  const alreadyCounted = new Map(
    portions.map(({ read }) => [read, new Set((read.body.notes ?? []).map(noteKey))]),
  );
  const add = (read: ReadBody, { path, reason }: QuarantineNote, field: string, wabaId: string) => {
    if (alreadyCounted.get(read)?.has(noteKey({ path, reason }))) return;
    const counted = read.unreadable === null ? reason : 'unreadable_body';
    const key = JSON.stringify([counted, field, wabaId]);
    const known = counts.get(key);
    if (known) known.count += 1;
    else counts.set(key, { reason: counted, field, wabaId, count: 1 });
  };
  for (const { read, items, isLast } of portions) {
    if (read.unreadable !== null) add(read, { path: '', reason: read.unreadable }, '', '');
    for (const part of isLast ? read.quarantined : [])
      add(read, part, (part.field ?? '').slice(0, 100), part.wabaId ?? '');
    for (const item of items) {
      for (const note of noteOf(item, reasons))
        if (note.reason !== AWAITS_NUMBER) add(read, note, fieldOf(item), item.wabaId);
    }
  }
  return [...counts.values()];
}

function fieldOf(item: UpstreamItem): string {
  return item.kind === 'upstream' ? item.field : 'messages';
}

function noteKey({ path, reason }: QuarantineNote): string {
  return `${path} ${reason}`;
}

/** Fields by which upstream tells that something about the numbers of a WABA changed. */
const NUMBER_FIELDS: ReadonlySet<string> = new Set([
  'phone_number_quality_update',
  'phone_number_name_update',
  'account_update',
]);

/** Has upstream asked about WABAs: for the numbers that parts of the bodies wait for, and when it says that they changed. */
async function askUpstream(
  trx: Transaction,
  bodies: readonly { body: InboxBody; items: UpstreamItem[] }[],
  reasons: ReadonlyMap<UpstreamItem, string>,
): Promise<void> {
  const waiting = bodies.flatMap(({ body: { day, id }, items }) =>
    items
      .filter((item) => reasons.get(item) === AWAITS_NUMBER)
      .map(({ wabaId, phoneNumberId }) => ({ wabaId, phoneNumberId: phoneNumberId ?? '', day, id })),
  );
  if (waiting.length > 0) {
    const distinct = new Map(waiting.map((one) => [Object.values(one).join(' '), one]));
    await insertWaitingBodies(trx, [...distinct.values()]);
    await askForNumbers(trx, [...new Set(waiting.map(({ wabaId }) => wabaId))]);
  }
  const changed = bodies.flatMap(({ items }) =>
    items.filter((item) => NUMBER_FIELDS.has(fieldOf(item))).map(({ wabaId }) => wabaId),
  );
  if (changed.length > 0) await askForNumbersAgain(trx, [...new Set(changed)], { atOnce: false });
}
