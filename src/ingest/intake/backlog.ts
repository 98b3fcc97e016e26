import { countEndpoints } from '../../engine/endpoint/endpoint-settings.ts';
import { type InboxBody, takeNewBodies, takeNewBodiesByWaba } from '../../engine/inbox/bodies.ts';
import { intakeEpochs } from '../../engine/inbox/intake-lock.ts';
import { MAX_ENDPOINTS } from '../../features/endpoints/endpoints.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import type { UpstreamItem } from '../split/upstream-items.ts';
import type { Look } from './inbox-floor.ts';
import { tryIntakeLocks } from './intake-locks.ts';
import { type KnownOwners, originsOf } from './owners.ts';
import { type BodyPortion, type ReadBody, readBody, sharePortions } from './portions.ts';
import { type IntakeMemory, lookOf, noteEpochs, type ShardMemory } from './shard-memory.ts';

/** The bodies that one transaction ingests, and those of the shards in which more may be waiting. */
type Portions = { portions: BodyPortion[]; items: UpstreamItem[]; known: KnownOwners; more: number[] };

/** Nothing of shards that another process is ingesting; at most as much as suits the pace of each, and `most`. */
export async function takePortions(
  trx: Transaction,
  { owners }: IntakeMemory,
  shards: readonly ShardMemory[],
  most = Number.POSITIVE_INFINITY,
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
  const portions = await affordable(trx, read, Math.min(most, ...shards.map(({ pace }) => pace.size().cost)));
  const finished = new Set(portions.filter(({ isLast }) => isLast).map((portion) => portion.read.body.id));
  for (const one of found) keepTheRest(one, read, finished);
  const isLeft = ({ bodies, isAll }: Found) => !isAll || bodies.some(({ id }) => !finished.has(id));
  const items = portions.flatMap((portion) => portion.items);
  const origins = originsOf(portions.map((portion) => ({ body: portion.read.body, items: portion.items })));
  const more = found.filter(isLeft).map(({ memory }) => memory.shard);
  return { portions, items, known: { owners, held, origins }, more };
}

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

const MIB = 1024 * 1024;

/** Bodies that are read per transaction: enough to share its cost, little enough to hold in memory. */
const BATCH = { bodies: 500, bytes: 4 * MIB };
/** Of a shard among several at least so many. */
const LEAST_OF_SHARD = 64;
const BACKLOG = { bodiesPerWaba: 100, bytesPerWaba: MIB / 4, bytes: 2 * MIB };

type Found = {
  memory: ShardMemory;
  look: Look;
  bodies: InboxBody[];
  isAll: boolean;
  /** Where the next turn of WABAs begins if that is not all. */
  nextWabaId: string;
};

/** Reads what waits in shards, or the oldest of it. A shard with a backlog is read alone, WABA by WABA. */
async function readBodies(trx: Transaction, shards: readonly ShardMemory[]): Promise<Found[]> {
  const [only] = shards;
  if (only === undefined) return [];
  const afterWabaId = only.pace.afterWabaId();
  if (shards.length === 1 && afterWabaId !== null) return [await readByWaba(trx, only, afterWabaId)];
  return await readById(trx, shards);
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
