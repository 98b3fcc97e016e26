import type { Logger } from '../platform/logger.ts';
import type { DatabasePool } from '../platform/postgres/database.ts';
import type { KeepAtOnce } from './inbox.ts';
import { makeDirectIntake } from './intake/direct-intake.ts';
import { type IntakeLoop, startIntake, type WorkerShare } from './intake/intake-loop.ts';
import type { IntakeTools } from './intake/intake-tools.ts';
import { makeIntakeMemory } from './intake/shard-memory.ts';

/** Starts the loop that ingests bodies, and what does so while they are kept, for an ingress in the same process. */
export function openIntake(
  tools: Pick<IntakeTools, 'directClaims' | 'onBody'> & { database: DatabasePool; logger: Logger },
  share: () => WorkerShare,
): { intake: IntakeLoop; directIntake: KeepAtOnce } {
  const shared = { ...tools, memory: makeIntakeMemory() };
  const intake = startIntake(shared, share);
  return { intake, directIntake: makeDirectIntake(shared, intake) };
}
