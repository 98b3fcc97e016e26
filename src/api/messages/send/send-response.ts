import { type Static, Type } from 'typebox';
import type { SendResponse } from '../../../features/messages/send/idempotency-keys.ts';
import type { SendProgress } from '../../../features/messages/send/outbound-messages.ts';
import { sendErrorOf } from '../../../features/messages/send/send-error.ts';
import type { Problem } from '../../../platform/schema/problems.ts';
import { errorBody } from '../../errors/api-error.ts';
import { ERROR_CODES } from '../../errors/error-codes.ts';
import { named, nullable, text } from '../../external/schema-kit.ts';

export const SentMessage = named('SentMessage', {
  serviceMessageId: text('4711'),
  conversationId: text('42'),
  metaMessageId: nullable(Type.String(), 'wamid.HBgLMTIwMjU1NTAxNDMVAgARGBJDQTBERjJDOTVBQTE0NEMxRDAA'),
  state: Type.Enum(['accepted', 'queued', 'unknown', 'scheduled', 'cancelled']),
  sendAt: Type.Optional(Type.String({ format: 'date-time' })),
  messageStatus: Type.Optional(Type.String()),
  waId: Type.Optional(
    Type.String({ description: 'The WhatsApp id of the recipient; can differ from the digits of `to`.' }),
  ),
  advice: Type.Optional(Type.String()),
  warnings: Type.Optional(
    Type.Array(named('SendWarning', { param: Type.String(), message: Type.String() }), {
      description: 'Types and members that the service does not know and passed on unchanged.',
    }),
  ),
});

type ResponseContext = { publicUrl: string; requestId: string; warnings: readonly Problem[] };

/**
 * 200: upstream has the message; 202: it waits, or its outcome is unknown; 424: it will not be sent. It follows from what is
 * stored and from the request alone, so that every process gives the same one.
 */
export function sendResponse(
  messageId: string,
  progress: SendProgress,
  request: ResponseContext,
): SendResponse {
  if (progress.state === 'failed') return refusal(messageId, progress, request);
  const { conversationId, upstreamId, upstreamStatus, waId, sendAt } = progress;
  const isAccepted = progress.state === 'accepted';
  const state = progress.state === 'sending' ? 'queued' : progress.state;
  const advice = state === 'unknown' ? sendErrorOf(progress.error)?.advice : null;
  const body: Static<typeof SentMessage> = {
    serviceMessageId: messageId,
    conversationId,
    metaMessageId: upstreamId,
    state,
    ...(sendAt !== null && { sendAt: sendAt.toISOString() }),
    ...(upstreamStatus !== null && { messageStatus: upstreamStatus }),
    ...(waId !== null && { waId }),
    ...(advice != null && { advice }),
    ...warningsOf(request),
  };
  return { status: isAccepted ? 200 : 202, body: JSON.stringify(body) };
}

function refusal(messageId: string, progress: SendProgress, request: ResponseContext): SendResponse {
  const error = sendErrorOf(progress.error);
  const code = error?.code === 'upstream_refused' ? 'upstream_refused' : 'message_not_sent';
  const message = error?.message ?? ERROR_CODES[code].message;
  const extras = {
    ...(error?.advice != null && { advice: error.advice }),
    serviceMessageId: messageId,
    ...(error?.upstream != null && { upstream: error.upstream }),
    ...warningsOf(request),
  };
  const body = errorBody({ code, message, param: null }, request, extras);
  return { status: ERROR_CODES[code].status, body: JSON.stringify(body) };
}

function warningsOf({ warnings }: ResponseContext) {
  return warnings.length > 0 && { warnings: [...warnings] };
}
