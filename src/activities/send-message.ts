import { Context } from '@temporalio/activity';
import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import { giveUpSend, type SendResult, type SendRun } from '../features/messages/send/make-send.ts';
import type { SendMessageInput } from '../features/messages/send/record-send.ts';
import { later, type SendMessageTools, SHORT_WAIT_MS } from '../features/messages/send/upload-media.ts';
import { isTransientError } from '../platform/postgres/error-class.ts';
import { unexpectedFailure, withHeartbeat } from '../platform/temporal/activity-kit.ts';

export type SendMessageActivities = ReturnType<typeof makeSendMessageActivities>;

/** `makeSend`, for the memory of a process. */
export type Send = (input: SendMessageInput, run: SendRun) => Promise<SendResult>;

export function makeSendMessageActivities(tools: SendMessageTools, send: Send) {
  return {
    /** Waits for the message's turn, calls upstream once and records what came of it. */
    async sendToUpstream(input: SendMessageInput): Promise<SendResult> {
      const { info, cancellationSignal: signal } = Context.current();
      try {
        const run = { attempt: info.attempt, signal, sitsOutMs: SHORT_WAIT_MS };
        return await withHeartbeat(() => send(input, run));
      } catch (error) {
        throw asActivityFailure(tools, input, error);
      }
    },

    /** Ends a message as failed because its workflow was cancelled; one that is being sent is waited for. */
    giveUpSend: async (input: SendMessageInput): Promise<SendResult> => await giveUpSend(tools, input),
  };
}

function asActivityFailure(tools: SendMessageTools, input: SendMessageInput, error: unknown): unknown {
  if (error instanceof ApplicationFailure) return error;
  const { cancellationSignal, cancellationDetails } = Context.current();
  if (cancellationSignal.aborted) {
    if (cancellationDetails?.cancelRequested) return new CancelledFailure('cancelled');
    return later('The worker is shutting down; another one goes on.', SHORT_WAIT_MS);
  }
  const reason = error instanceof Error ? error.message : 'unknown failure';
  if (isTransientError(error)) return later(`The database is not available: ${reason}.`, SHORT_WAIT_MS);
  tools.logger.warn({ err: error, ...input }, 'sending: unexpected failure');
  return unexpectedFailure(reason, 5_000);
}
