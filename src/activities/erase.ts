import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import {
  type ErasedBatch,
  type EraseTools,
  type ErasureProgress,
  eraseNextBatch,
} from '../ops/erasures/erase.ts';
import { awaitingDatabase, notYet, withHeartbeat } from '../platform/temporal/activity-kit.ts';

export type EraseInput = { erasureId: string };

export type EraseActivities = ReturnType<typeof makeEraseActivities>;

export type EraseActivityTools = Omit<EraseTools, 'cancelWorkflows'>;

const TYPE = 'NotYetErased';

/** Within a worker's grace at shutdown, so that a run ends by itself. */
const LONGEST_RUN_MS = 15_000;
const GO_ON_MS = 1;

export function makeEraseActivities(tools: EraseActivityTools) {
  return {
    /**
     * Erases batch after batch; while something has to be waited for it fails, benignly, with the wait until it goes
     * on. Each batch is committed with its place, so that nothing is counted twice whatever dies.
     */
    eraseData: (input: EraseInput): Promise<ErasureProgress> => {
      let progress: ErasureProgress | null = null;
      const onBatch = ({ state, step, erased }: ErasedBatch) => {
        progress = { state, step, erased };
        Context.current().heartbeat(progress);
      };
      return withHeartbeat(
        () => awaitingDatabase(TYPE, () => eraseAll({ ...tools, cancelWorkflows }, input, onBatch)),
        () => progress,
      );
    },
  };
}

async function eraseAll(
  tools: EraseTools,
  { erasureId }: EraseInput,
  onBatch: (batch: ErasedBatch) => void,
): Promise<ErasureProgress> {
  const startMs = performance.now();
  for (;;) {
    const batch = await eraseNextBatch(tools, erasureId);
    if (batch === null) {
      const message = `There is no erasure ${erasureId}.`;
      throw ApplicationFailure.create({ message, type: 'UnknownErasure', nonRetryable: true });
    }
    onBatch(batch);
    const { state, step, erased, waitMs, reason } = batch;
    if (state === 'done') return { state, step, erased };
    if (waitMs > 0) throw notYet(TYPE, `${summaryOf(batch)} ${reason}`, waitMs);
    const { cancellationSignal } = Context.current();
    if (cancellationSignal.aborted || performance.now() - startMs > LONGEST_RUN_MS)
      throw notYet(TYPE, `${summaryOf(batch)} Going on.`, GO_ON_MS);
  }
}

function summaryOf({ step, erased }: ErasureProgress): string {
  return `${erased} rows and files erased; ${step}.`;
}

/** Best effort: without it they end when they next look for their work. */
async function cancelWorkflows(workflowIds: readonly string[]): Promise<void> {
  const { client } = Context.current();
  await Promise.allSettled(workflowIds.map((id) => client.workflow.getHandle(id).cancel()));
}
