import type { RetryPolicy } from '@temporalio/common';

/** For activities whose failures bring their own waits (nextRetryDelay): this is for a worker that died. */
export const LOST_WORKER_RETRY: RetryPolicy = {
  initialInterval: '1 second',
  backoffCoefficient: 2,
  maximumInterval: '30 seconds',
};
