import { type Loop, startLoop } from '../loop.ts';
import { type IntakeTools, takeInBatch } from './intake-batch.ts';

/** How long a lost notification can delay a body. */
const POLL_MS = 250;

/** Takes in upstream bodies as they arrive. In every worker process; one at a time does the work. */
export function startIntake(tools: IntakeTools): Loop {
  return startLoop({
    name: 'intake',
    pollMs: POLL_MS,
    logger: tools.logger,
    turn: async () => await takeInBatch(tools),
  });
}
