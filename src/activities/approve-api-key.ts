import { ApplicationFailure } from '@temporalio/common';
import {
  describeRequest,
  type FollowedRequest,
  followKeyRequest,
  type RequestDescription,
} from '../features/keys/follow-key-request.ts';
import type { Database } from '../platform/postgres/database.ts';

/** The input of a signal `approve` or `deny`. */
export type GivenDecision = { state: 'approved' | 'denied'; note: string; by: string | null };

export type ApproveApiKeyInput = { wabaId: string; requestId: string };

export type KeyRequestActivities = ReturnType<typeof makeKeyRequestActivities>;

export type KeyRequestActivityTools = {
  database: Database;
  logger: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
};

export type SeenRequest = RequestDescription &
  Pick<FollowedRequest, 'isOver' | 'waitMs'> & { state: string; tenantId: string };

export function makeKeyRequestActivities({ database, logger }: KeyRequestActivityTools) {
  return {
    /** Lets time do to the request what it does, and says how it is. */
    lookAtRequest: async ({ wabaId, requestId }: ApproveApiKeyInput): Promise<SeenRequest> => {
      const followed = await followKeyRequest({ database }, wabaId, requestId);
      if (followed === null) {
        const message = `There is no request ${requestId} of WABA ${wabaId}.`;
        throw ApplicationFailure.create({ message, type: 'UnknownKeyRequest', nonRetryable: true });
      }
      remind(logger, followed);
      const { request, isOver, waitMs } = followed;
      const { state, tenantId } = request;
      return { state, tenantId, isOver, waitMs, ...describeRequest(request) };
    },

    /** Decides nothing, because everyone who reaches Temporal can send a signal. `refusal` says where to decide. */
    decideBySignal: async (_: ApproveApiKeyInput & GivenDecision): Promise<{ refusal: string }> => ({
      refusal: 'decide in the portal under Approvals, or with "admin key-request".',
    }),
  };
}

/** The second reminder is the last, and louder. */
function remind(
  logger: KeyRequestActivityTools['logger'],
  { request, reminder }: Pick<FollowedRequest, 'request' | 'reminder'>,
): void {
  if (reminder === null) return;
  const { id: keyRequestId, wabaId, requesterId, createdAt, decideUntil } = request;
  const level = reminder === 1 ? 'info' : 'warn';
  const fields = { keyRequestId, wabaId, requesterId, createdAt, decideUntil };
  logger[level](fields, 'a request for an API key waits for an operator');
}
