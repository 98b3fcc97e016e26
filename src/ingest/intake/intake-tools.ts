import type { InboxOutcome } from '../../engine/inbox/bodies.ts';
import type { DirectClaims } from '../../engine/queue/enqueue.ts';
import type { Logger } from '../../platform/logger.ts';
import type { TracedEvent } from '../../platform/metrics/metrics.ts';
import type { Database } from '../../platform/postgres/database.ts';
import type { UpstreamItem } from '../split/upstream-items.ts';
import type { IntakeMemory } from './shard-memory.ts';

export type IntakeTools = {
  database: Database;
  memory: IntakeMemory;
  directClaims: () => DirectClaims | null;
  logger: Logger;
  /** For metrics: called with each body once its events are committed. */
  onBody: (state: Exclude<InboxOutcome['state'], 'new'>) => void;
};

export function tracedItem({ kind, wabaId, eventId }: UpstreamItem): TracedEvent {
  return { type: kind, wabaId, eventId };
}
