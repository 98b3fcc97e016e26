import {
  type ActivityOptions,
  ApplicationFailure,
  CancellationScope,
  isCancellation,
  proxyActivities,
  workflowInfo,
} from '@temporalio/workflow';
import { LOST_WORKER_RETRY, queuesBeside } from '../platform/temporal/workflow-options.ts';

type Queue = Exclude<keyof ReturnType<typeof queuesBeside>, 'session'>;

/** Activities on a queue of the installation, retried by the waits that their failures bring. */
export function activitiesOn<Activities extends object>(queue: Queue, options: ActivityOptions): Activities {
  const taskQueue = queuesBeside(workflowInfo().taskQueue)[queue];
  return proxyActivities<Activities>({ taskQueue, retry: LOST_WORKER_RETRY, ...options }) as Activities;
}

/** Does the work; cancelling it means to give up. */
export async function orGiveUp<Result>(
  work: () => Promise<Result>,
  giveUp: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!isCancellation(error)) throw error;
    return await CancellationScope.nonCancellable(giveUp);
  }
}

/** What no receiver took ends as a failed workflow, so that operators find it by its status. */
export function resultOf({ failed, summary }: { failed: boolean; summary: string }, type: string): string {
  if (failed) throw ApplicationFailure.create({ message: summary, type, nonRetryable: true });
  return summary;
}
