import type { Transaction } from '../../platform/postgres/database.ts';
import { type InboxBody, takeNewBodies, takeNewBodiesByWaba } from '../inbox/inbox.ts';
import type { Look } from './inbox-floor.ts';
import type { ShardMemory } from './intake-memory.ts';

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

async function readById(trx: Transaction, shards: readonly ShardMemory[]): Promise<Found[]> {
  const startMs = performance.now();
  const several = shards.length > 1 ? 2 : 1;
  const limits = {
    bodies: Math.min(BATCH.bodies, Math.max(LEAST_OF_SHARD, (several * BATCH.bodies) / shards.length)) | 0,
    bytes: (BATCH.bytes / shards.length) | 0,
  };
  const looks = shards.map(({ shard, floor }) => ({ shard, fromId: floor.from() }));
  const byShard = Map.groupBy(await takeNewBodies(trx, looks, limits), ({ shard }) => shard);
  const tookMs = performance.now() - startMs;
  return shards.map((memory) => {
    const bodies = byShard.get(memory.shard) ?? [];
    const look = { tookMs, ids: bodies.map(({ id }) => id) };
    const isAll = bodies.length < limits.bodies && bytesOf(bodies) < limits.bytes;
    return { memory, look, bodies, isAll, nextWabaId: '' };
  });
}

async function readByWaba(trx: Transaction, memory: ShardMemory, afterWabaId: string): Promise<Found> {
  const startMs = performance.now();
  const { shard, floor, pace } = memory;
  const { wabas } = pace.size();
  const limits = { ...BACKLOG, shard, fromId: floor.from(), afterWabaId, wabas };
  const bodies = await takeNewBodiesByWaba(trx, limits);
  const look = { tookMs: performance.now() - startMs, ids: null };
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
