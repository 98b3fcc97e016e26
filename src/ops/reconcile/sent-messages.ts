import {
  hasCarriedOut,
  readWorkflowResult,
  type WorkflowState,
} from '../../platform/temporal/workflow-states.ts';
import type { ReconcileTools } from './findings.ts';

const CALL_MS = 60_000;

/**
 * Whether a message may be out by the workflow that sends it, when nothing runs: it must rather be missing than go out twice. A workflow that only
 * waited for the turn of its message has sent nothing.
 */
export async function mayBeOut(
  { temporal }: Pick<ReconcileTools, 'temporal'>,
  workflowId: string,
  state: WorkflowState,
): Promise<boolean> {
  if (state === 'running') return await temporal.use(CALL_MS, (client) => hasCarriedOut(client, workflowId));
  if (state !== 'completed') return false;
  const result = await temporal.use(CALL_MS, (client) => readWorkflowResult(client, workflowId));
  return (result as { outcome?: unknown } | null)?.outcome !== 'failed';
}
