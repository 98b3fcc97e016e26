import { SHARDS } from '../../src/engine/inbox/shards.ts';
import { takeInShards } from '../../src/ingest/intake/intake-batch.ts';
import type { IntakeTools } from '../../src/ingest/intake/intake-tools.ts';
import { makeIntakeMemory } from '../../src/ingest/intake/shard-memory.ts';
import { insertBodies } from '../../src/ingest/intake/store-bodies.ts';
import type { Database } from '../../src/platform/postgres/database.ts';
import { query } from '../../src/platform/postgres/sql.ts';
import { silentLogger } from './silent-logger.ts';

/** Of a direct intake: what takes long in a test is the machine. */
export const ENDLESS_PATIENCE = { wholeMs: 20_000, locksMs: 20_000, longestRestMs: 0 };

/** Stores bodies as the ingress does and takes them in as the worker does. */
export async function takeIn(database: Database, ...bodies: Buffer[]): Promise<void> {
  await insertBodies(database, bodies);
  await drainInbox(database);
}

export async function drainInbox(
  database: Database,
  tools: IntakeTools = intakeTools(database),
): Promise<void> {
  for (;;) {
    await takeInBatch(tools);
    const left = await query(database, `select 1 from inbox where state = 'new' limit 1`);
    if (left.length === 0) return;
  }
}

/** Intake without a session to claim for. */
export function intakeTools(database: Database) {
  const memory = makeIntakeMemory();
  return { database, memory, logger: silentLogger, directClaims: () => null, onBody: () => undefined };
}

/** A turn of all shards as the worker's loop takes them: together, or alone with a backlog or in trouble. */
export async function takeInBatch(tools: IntakeTools): Promise<boolean> {
  const isAlone = (shard: number) => tools.memory.of(shard).pace.afterWabaId() !== null;
  const together = SHARDS.filter((shard) => !isAlone(shard));
  const more = together.length === 0 ? [] : await takeInShards(tools, together);
  const alone = SHARDS.filter(isAlone).filter((shard) => more.includes(shard) || !together.includes(shard));
  const turns = await Promise.allSettled(alone.map((shard) => takeInShards(tools, [shard])));
  for (const turn of turns) if (turn.status === 'rejected') throw turn.reason;
  return [more, ...turns.map((turn) => (turn.status === 'fulfilled' ? turn.value : []))].flat().length > 0;
}

/** Has every shard take as little as it can at a time. */
export function takeSmallSteps({ memory }: IntakeTools): void {
  for (const shard of SHARDS) for (let n = 0; n < 10; n += 1) memory.of(shard).pace.failed();
}

export type StoredEvent = {
  type: string;
  eventId: string;
  wabaId: string;
  sequence: string;
  body: string | null;
};

/** All events in the order in which they were stored. */
export async function storedEvents(database: Database): Promise<StoredEvent[]> {
  return await query<StoredEvent>(
    database,
    `select event_type as type, event_id as "eventId", waba_id as "wabaId", sequence,
            convert_from(body, 'UTF8') as body
       from events order by created_at, ctid`,
  );
}
