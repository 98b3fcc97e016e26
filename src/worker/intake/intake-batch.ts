import { MAX_ENDPOINTS } from '../../accounts/endpoints.ts';
import { type Database, LastStatements, type Transaction } from '../../database/database.ts';
import { isDataError } from '../../database/error-class.ts';
import {
  countSetAside,
  finishBodies,
  type InboxBody,
  type InboxOutcome,
  type SetAsideCount,
  type SetAsideNote,
  takeNewBodies,
  takeNewBodiesByWaba,
} from '../../database/inbox.ts';
import { intakeEpoch, tryIntakeLock } from '../../database/locks.ts';
import { countEndpoints } from '../../database/subscribers.ts';
import { AWAITS_NUMBER } from '../../database/waiting-bodies.ts';
import type { DirectClaims } from '../../deliveries/loop/direct-claims.ts';
import type { ClaimedDelivery } from '../../deliveries/queue/claim.ts';
import type { UpstreamItem } from '../../domain/upstream/upstream-items.ts';
import type { Logger } from '../logger.ts';
import { askUpstream } from './ask-upstream.ts';
import { type BodyPortion, type ReadBody, readBody, sharePortions } from './body-portions.ts';
import { commitItems } from './commit-items.ts';
import type { Look } from './inbox-floor.ts';
import type { IntakeMemory } from './intake-memory.ts';
import type { IntakePace } from './intake-pace.ts';
import { sortItems } from './sort-items.ts';

const MIB = 1024 * 1024;

/** Bodies that are read per transaction: enough to share its cost, little enough to hold in memory. */
const BATCH = { bodies: 500, bytes: 4 * MIB };
const BACKLOG = { bodiesPerWaba: 100, bytesPerWaba: MIB, bytes: 8 * MIB };

/** Looking for an item that cannot be stored takes a savepoint per group, so fewer are looked through at a time. */
const COST_IN_PIECES = 200;

export type IntakeTools = {
  database: Database;
  pace: IntakePace;
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
 * Takes in bodies that wait, all in one transaction; returns whether more may be waiting.
 * When the transaction fails for a reason that lies in the data, it is redone item group by item group until the
 * items that cannot be stored are found; they are set aside with the reason and everything else goes on.
 */
export async function takeInBatch(tools: IntakeTools): Promise<boolean> {
  const startMs = performance.now();
  try {
    const taken = await takeInAtOnceOrInPieces(tools);
    tools.pace.done(performance.now() - startMs);
    for (const { state } of taken.outcomes) if (state !== 'new') tools.onBody(state);
    return taken.more;
  } catch (error) {
    if (error instanceof NothingStorableError) tools.pace.takeTurns();
    else tools.pace.failed();
    throw error;
  }
}

async function takeInAtOnceOrInPieces(tools: IntakeTools): Promise<Taken> {
  const claims = tools.directClaims();
  try {
    const taken = await takeInTogether(tools, claims);
    claims?.carry(taken.claimed);
    return taken;
  } catch (error) {
    claims?.cancel();
    if (!isDataError(error)) throw error;
    tools.logger.warn({ err: error }, 'an upstream body cannot be stored as it is: looking for the item');
    return await takeInPieces(tools);
  }
}

type Taken = { claimed: ClaimedDelivery[]; outcomes: InboxOutcome[]; more: boolean };

async function takeInTogether(tools: IntakeTools, claims: DirectClaims | null): Promise<Taken> {
  return await tools.database.transaction(async (trx) => {
    const { portions, more } = await takePortions(trx, tools, tools.pace.size().cost);
    if (portions.length === 0) return { claimed: [], outcomes: [], more };
    const items = portions.flatMap((portion) => portion.items);
    const { owned, reasons } = await sortItems(trx, items, tools.memory.owners);
    const finished = finish(trx, portions, reasons);
    const [committing, outcomes] = await Promise.all([commitItems(trx, owned, claims), finished]);
    return new LastStatements(committing.answers.then((claimed) => ({ claimed, outcomes, more })));
  });
}

/** Nothing when another process is taking in. */
async function takePortions(
  trx: Transaction,
  tools: IntakeTools,
  budget: number,
): Promise<{ portions: BodyPortion[]; more: boolean }> {
  const { memory } = tools;
  const [locked, epoch, found] = await Promise.all([
    tryIntakeLock(trx),
    intakeEpoch(trx),
    readBodies(trx, tools),
  ]);
  if (!locked) return { portions: [], more: false };
  const { look, bodies, isAll, nextWabaId } = memory.isOf(epoch) ? found : await readBodies(trx, tools);
  memory.floor.looked(look);
  const read = bodies.map((body) => ({ ...(memory.kept.get(body.id) ?? readBody(body)), body }));
  const portions = await affordable(trx, read, budget);
  const finished = new Set(portions.filter(({ isLast }) => isLast).map((portion) => portion.read));
  memory.kept.clear();
  for (const one of read) if (!finished.has(one)) memory.kept.set(one.body.id, one);
  const isNothing = isAll && finished.size === read.length;
  tools.pace.taking({ isNothing, nextWabaId });
  return { portions, more: !isNothing };
}

/** Reads what waits, or the oldest of it; `nextWabaId` is where the next turn begins if that is not all. */
async function readBodies(
  trx: Transaction,
  { pace, memory: { floor } }: IntakeTools,
): Promise<{ look: Look; bodies: InboxBody[]; isAll: boolean; nextWabaId: string }> {
  const startMs = performance.now();
  const fromId = floor.from();
  const afterWabaId = pace.afterWabaId();
  if (afterWabaId === null) {
    const bodies = await takeNewBodies(trx, { ...BATCH, fromId });
    const look = { tookMs: performance.now() - startMs, ids: bodies.map(({ id }) => id) };
    const isAll = bodies.length < BATCH.bodies && bytesOf(bodies) < BATCH.bytes;
    return { look, bodies, isAll, nextWabaId: '' };
  }
  const { wabas } = pace.size();
  const bodies = await takeNewBodiesByWaba(trx, { ...BACKLOG, fromId, afterWabaId, wabas });
  const look = { tookMs: performance.now() - startMs, ids: null };
  const byWaba = Map.groupBy(bodies, (body) => body.wabaId);
  const isToTheEnd = byWaba.size < wabas && bytesOf(bodies) < BACKLOG.bytes;
  const isWhole = (own: InboxBody[]) =>
    own.length < BACKLOG.bodiesPerWaba && bytesOf(own) < BACKLOG.bytesPerWaba;
  const isAll = afterWabaId === '' && isToTheEnd && [...byWaba.values()].every(isWhole);
  return { look, bodies, isAll, nextWabaId: isToTheEnd ? '' : (bodies.at(-1)?.wabaId ?? '') };
}

function bytesOf(bodies: readonly InboxBody[]): number {
  return bodies.reduce((sum, { body }) => sum + body.length, 0);
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
  const costOf = (item: UpstreamItem) =>
    endpoints === null ? 0 : 1 + (endpoints.get(item.wabaId) ?? 0) * eventsOf(item);
  return sharePortions(read, budget, costOf);
}

/** A cart is a message and an order. */
function eventsOf(item: UpstreamItem): number {
  return item.kind === 'message' && item.order !== null ? 2 : 1;
}

const MAX_COST = 1 + 2 * MAX_ENDPOINTS;

/** The same work with one savepoint per group of items, halving a group that fails. */
async function takeInPieces(tools: IntakeTools): Promise<Taken> {
  const failures: Failure[] = [];
  const taken = await tools.database.transaction(async (trx) => {
    const budget = Math.min(COST_IN_PIECES, tools.pace.size().cost);
    const { portions, more } = await takePortions(trx, tools, budget);
    const items = portions.flatMap((portion) => portion.items);
    const reasons = new Map<UpstreamItem, string>();
    await commitOrHalve(trx, items, tools.memory.owners, failures, reasons);
    const bodies = portions.filter((portion) => portion.items.length > 0).length;
    // One body may be bad as a whole. Whoever sends several such has to wait until somebody else's goes through.
    if (bodies > 1 && failures.length === items.length)
      throw new NothingStorableError(bodies, failures[0]?.error);
    return { claimed: [], outcomes: await finish(trx, portions, reasons), more };
  });
  for (const { error, path } of failures) {
    tools.logger.error({ err: error, path }, 'an upstream item cannot be stored; its body is kept');
  }
  return taken;
}

type Failure = { error: unknown; path: string };

async function commitOrHalve(
  trx: Transaction,
  items: readonly UpstreamItem[],
  owners: IntakeMemory['owners'],
  failures: Failure[],
  reasons: Map<UpstreamItem, string>,
): Promise<void> {
  if (items.length === 0) return;
  try {
    await trx.transaction(async (savepoint) => {
      const sorted = await sortItems(savepoint, items, owners);
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
    await commitOrHalve(trx, items.slice(0, half), owners, failures, reasons);
    await commitOrHalve(trx, items.slice(half), owners, failures, reasons);
  }
}

async function finish(
  trx: Transaction,
  portions: readonly BodyPortion[],
  reasons: ReadonlyMap<UpstreamItem, string>,
): Promise<InboxOutcome[]> {
  const outcomes = portions.map((portion) => outcomeOf(portion, reasons));
  await finishBodies(trx, outcomes);
  await countSetAside(trx, countsOf(portions, reasons));
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
  const notes = [...read.setAside.map(({ path, reason }) => ({ path, reason })), ...ofItems];
  return { day, id, state: stateOf(notes, ofItems), notes, partly: null };
}

function stateOf(notes: readonly SetAsideNote[], ofItems: readonly SetAsideNote[]): InboxOutcome['state'] {
  const has = (wanted: string) => ofItems.some(({ reason }) => reason === wanted);
  if (has('failed')) return 'failed';
  if (has(AWAITS_NUMBER)) return 'waiting';
  return notes.length > 0 ? 'set_aside' : 'done';
}

function noteOf(item: UpstreamItem, reasons: ReadonlyMap<UpstreamItem, string>): SetAsideNote[] {
  const reason = reasons.get(item);
  return reason === undefined ? [] : [{ path: item.path, reason }];
}

/**
 * Beyond the known reasons, upstream chooses the words: a bounded number of them may become rows. What is set aside a
 * second time for the same reason was counted the first time.
 */
function countsOf(
  portions: readonly BodyPortion[],
  reasons: ReadonlyMap<UpstreamItem, string>,
): SetAsideCount[] {
  const counts = new Map<string, SetAsideCount>();
  const alreadyCounted = new Map(
    portions.map(({ read }) => [read, new Set((read.body.notes ?? []).map(noteKey))]),
  );
  const add = (read: ReadBody, { path, reason }: SetAsideNote, field: string, wabaId: string) => {
    if (alreadyCounted.get(read)?.has(noteKey({ path, reason }))) return;
    const counted = read.unreadable === null ? reason : 'unreadable_body';
    const key = JSON.stringify([counted, field, wabaId]);
    const known = counts.get(key);
    if (known) known.count += 1;
    else counts.set(key, { reason: counted, field, wabaId, count: 1 });
  };
  for (const { read, items, isLast } of portions) {
    if (read.unreadable !== null) add(read, { path: '', reason: read.unreadable }, '', '');
    for (const part of isLast ? read.setAside : [])
      add(read, part, (part.field ?? '').slice(0, 100), part.wabaId ?? '');
    for (const item of items) {
      for (const note of noteOf(item, reasons))
        if (note.reason !== AWAITS_NUMBER) add(read, note, 'messages', item.wabaId);
    }
  }
  return [...counts.values()];
}

function noteKey({ path, reason }: SetAsideNote): string {
  return `${path} ${reason}`;
}
