import type { Logger } from '../../platform/logger.ts';
import type { WorkWatch } from '../../platform/loop.ts';
import type { DatabasePool } from '../../platform/postgres/database.ts';
import { makeDirectIntake } from './direct-intake.ts';
import { type IntakeLoop, startIntake, type WorkerShare } from './intake-loop.ts';
import type { IntakeTools } from './intake-tools.ts';
import { makeIntakeMemory } from './shard-memory.ts';
import type { KeepAtOnce } from './store-bodies.ts';

/** Starts the loop that ingests bodies, and what does so while they are kept, for an ingress in the same process. */
export function openIntake(
  tools: Pick<IntakeTools, 'directClaims' | 'onBody'> & { database: DatabasePool; logger: Logger },
  share: () => WorkerShare,
  watch: WorkWatch,
): { intake: IntakeLoop; directIntake: KeepAtOnce } {
  const shared = { ...tools, memory: makeIntakeMemory() };
  const intake = startIntake(shared, share, watch);
  return { intake, directIntake: makeDirectIntake(shared, intake) };
}
