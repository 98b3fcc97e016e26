import type { ActivityInboundCallsInterceptor, WorkerInterceptors } from '@temporalio/worker';
import { redactError } from '../error-redaction.ts';

/** What Temporal writes into histories of a failed activity quotes no data. */
export const REDACT_FAILURES: WorkerInterceptors = {
  activity: [() => ({ inbound: redacting })],
};

const redacting: ActivityInboundCallsInterceptor = {
  execute: async (input, next) => {
    try {
      return await next(input);
    } catch (error) {
      redactError(error);
      throw error;
    }
  },
};
