import type { FastifyReply, FastifyRequest } from 'fastify';
import { listPhoneNumbers } from '../../../accounts/accounts.ts';
import {
  findIdempotencyKey,
  holdIdempotencyKey,
  type IdempotencyKey,
  type KnownKey,
  saveIdempotentAnswer,
} from '../../../messages/send/idempotency-keys.ts';
import { findSendProgress } from '../../../messages/send/outbound-messages.ts';
import { ApiError } from '../../errors/api-error.ts';
import type { ExternalApp, ExternalContext } from '../../external/external-app.ts';
import { sendJsonText } from '../../external/json-text.ts';
import { NoQuery } from '../../external/schema-kit.ts';
import { accountOf } from '../../keys/api-key-auth.ts';
import { SCOPES } from '../../keys/key-scopes.ts';
import { validatorCompiler } from '../../plugins/validation.ts';
import { sendProblem } from './check-send.ts';
import { idempotencyKeyOf } from './idempotency-key.ts';
import { isOutcome } from './outcome-waiter.ts';
import { HOLD_MS, queueMessage } from './queue-message.ts';
import { type SendAnswer, SentMessage, sendAnswer } from './send-answer.ts';
import { SendBody, type SendRequest } from './send-body.ts';
import { sendDocs } from './send-docs.ts';
import { checkMedia } from './sendable-media.ts';

const OPERATION = 'sendMessage';

/** Templates with carousels and lists of products are large. */
const BODY_LIMIT_BYTES = 256 * 1024;

/**
 * POST /api/external/messages: sends a message to a customer. The upstream message object stands in the body as it is;
 * the answer waits for upstream, for about 10 s.
 */
export function sendMessageRoute(app: ExternalApp, context: ExternalContext): void {
  const schema = {
    ...sendDocs,
    querystring: NoQuery,
    body: SendBody,
    response: { 200: SentMessage, 202: SentMessage },
  };
  const options = {
    schema,
    validatorCompiler: sendValidator,
    config: SCOPES.send,
    bodyLimit: BODY_LIMIT_BYTES,
  };
  app.post('/api/external/messages', options, async (request, reply) => {
    const key = idempotencyKeyOf(request, OPERATION);
    const body = request.body as SendRequest;
    const { answer, replayed } = await answerSend(context, request, body, key);
    if (replayed) reply.header('idempotent-replayed', 'true');
    return sendText(reply, answer);
  });
}

/** The forms of the body are told apart by hand, so that an error names the one member that is wrong. */
const sendValidator: typeof validatorCompiler = (route) => {
  if (route.httpPart !== 'body') return validatorCompiler(route);
  return (value: unknown) => {
    const problem = sendProblem(value);
    if (problem === null) return { value };
    const { param, message } = problem;
    return { error: new ApiError('invalid_parameter', { ...(param !== '' && { param }), message }) };
  };
};

/** Already serialized: a repeated answer is the first one, byte for byte. */
function sendText(reply: FastifyReply, { status, body }: SendAnswer): FastifyReply {
  return sendJsonText(reply.code(status), body);
}

type Answered = { answer: SendAnswer; replayed: boolean };

async function answerSend(
  context: ExternalContext,
  request: FastifyRequest,
  body: SendRequest,
  key: IdempotencyKey | null,
): Promise<Answered> {
  const { database, sends } = context;
  const { wabaId } = accountOf(request);
  const known = key === null ? null : await findIdempotencyKey(database, wabaId, key);
  if (key !== null && known !== null) return await repeat(context, request, key, known);
  const numbers = await listPhoneNumbers(database, wabaId);
  if (!numbers.some(({ phoneNumberId }) => phoneNumberId === body.phoneNumberId)) {
    throw new ApiError('unknown_phone_number', { param: 'phoneNumberId' });
  }
  await checkMedia(database, wabaId, body);
  const messageId = await queueMessage(database, wabaId, body, key);
  if (messageId === null) return await repeatTaken(context, request, key);
  void sends.starter.start(accountOf(request), messageId);
  return { answer: await finalAnswer(context, request, messageId, key), replayed: false };
}

/** Waits for the outcome; what is answered then is the answer to all repetitions. */
async function finalAnswer(
  { database, publicUrl, sends }: ExternalContext,
  request: FastifyRequest,
  messageId: string,
  key: IdempotencyKey | null,
): Promise<SendAnswer> {
  const { wabaId } = accountOf(request);
  const progress = await sends.outcomes.wait(wabaId, messageId);
  const answer = sendAnswer(messageId, progress, { publicUrl, requestId: request.id });
  if (key !== null) await saveIdempotentAnswer(database, wabaId, key, answer);
  return answer;
}

/** The key was taken between our look and our attempt to take it. */
async function repeatTaken(
  context: ExternalContext,
  request: FastifyRequest,
  key: IdempotencyKey | null,
): Promise<Answered> {
  const { wabaId } = accountOf(request);
  const known = key === null ? null : await findIdempotencyKey(context.database, wabaId, key);
  if (key === null || known === null) throw new Error('the key was taken and is not there');
  return await repeat(context, request, key, known);
}

const RETRY_AFTER_SECONDS = '1';

/**
 * A request that came before: its answer once more; its outcome, when that is known although the process that should
 * have answered is gone; 409 while it is under way.
 */
async function repeat(
  context: ExternalContext,
  request: FastifyRequest,
  key: IdempotencyKey,
  known: KnownKey,
): Promise<Answered> {
  const { database } = context;
  const { wabaId } = accountOf(request);
  if (!known.sameRequest) throw new ApiError('idempotency_key_reused', { param: 'Idempotency-Key' });
  if (known.answer !== null) return { answer: known.answer, replayed: true };
  const progress = await findSendProgress(database, wabaId, known.messageId);
  const isAbandoned = known.heldMs === 0 && (await holdIdempotencyKey(database, wabaId, key, HOLD_MS));
  if (isAbandoned || (progress !== null && isOutcome(progress))) {
    return { answer: await finalAnswer(context, request, known.messageId, key), replayed: true };
  }
  throw new ApiError('idempotency_key_in_flight', { headers: { 'retry-after': RETRY_AFTER_SECONDS } });
}
