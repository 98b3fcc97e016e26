import type { Database } from '../../src/database/database.ts';
import { insertBodies } from '../../src/database/inbox.ts';
import { query } from '../../src/database/sql.ts';
import { takeInBatch } from '../../src/worker/intake/intake-batch.ts';
import { makeIntakeMemory } from '../../src/worker/intake/intake-memory.ts';
import { makeIntakePace } from '../../src/worker/intake/intake-pace.ts';
import { silentLogger } from './silent-logger.ts';

/** Stores bodies as the ingress does and takes them in as the worker does. */
export async function takeIn(database: Database, ...bodies: Buffer[]): Promise<void> {
  await insertBodies(database, bodies);
  await drainInbox(database);
}

export async function drainInbox(database: Database): Promise<void> {
  const tools = intakeTools(database);
  for (;;) {
    await takeInBatch(tools);
    const left = await query(database, `select 1 from inbox where state = 'new' limit 1`);
    if (left.length === 0) return;
  }
}

/** Intake without a session to claim for. */
export function intakeTools(database: Database) {
  const memory = { pace: makeIntakePace(), memory: makeIntakeMemory() };
  return { database, ...memory, logger: silentLogger, directClaims: () => null, onBody: () => undefined };
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
