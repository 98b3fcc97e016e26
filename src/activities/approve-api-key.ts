import { ApplicationFailure } from '@temporalio/common';
import {
  describeRequest,
  type FollowedRequest,
  followKeyRequest,
  type RequestDescription,
} from '../keys/follow-key-request.ts';
import { decideKeyRequest } from '../keys/key-requests.ts';
import type { Database } from '../platform/postgres/database.ts';
import { checkName, RequestError } from '../platform/request-input.ts';

/** What an operator decided by signal. `by`: who they say they are. */
export type GivenDecision = { state: 'approved' | 'denied'; note: string; by: string | null };

/** Ids only: the request is in the database. */
export type ApproveApiKeyInput = { wabaId: string; requestId: string };

export type KeyRequestActivities = ReturnType<typeof makeKeyRequestActivities>;

export type KeyRequestActivityTools = {
  database: Database;
  logger: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
};

/** A request as its workflow shows it. */
export type SeenRequest = RequestDescription & {
  state: string;
  tenantId: string;
  isOver: boolean;
  /** How long nothing will happen by itself, in ms. */
  waitMs: number;
};

/** The activities of `approveApiKey`. */
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

    /** Decides as a signal says. `refusal`: why not, when the signal asks for something that cannot be. */
    decideBySignal: async ({
      requestId,
      state,
      note,
      by,
    }: ApproveApiKeyInput & GivenDecision): Promise<{ refusal: string | null }> => {
      try {
        const who = by === null ? '' : `: ${checkName('The name in "by"', by)}`;
        const actor = { name: `operator (Temporal${who})`, requestId: null, ip: null };
        await decideKeyRequest({ database, actor }, requestId, { state, note });
        return { refusal: null };
      } catch (error) {
        if (error instanceof RequestError) return { refusal: error.message };
        throw error;
      }
    },
  };
}

/** The second reminder is the last, and louder. */
function remind(
  logger: KeyRequestActivityTools['logger'],
  { request, reminder }: Pick<FollowedRequest, 'request' | 'reminder'>,
): void {
  if (reminder === null) return;
  const { id: keyRequestId, wabaId, requester, createdAt, decideUntil } = request;
  const level = reminder === 1 ? 'info' : 'warn';
  const fields = { keyRequestId, wabaId, requester, createdAt, decideUntil };
  logger[level](fields, 'a request for an API key waits for an operator');
}
