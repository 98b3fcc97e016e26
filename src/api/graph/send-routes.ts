import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  findInboundByUpstreamId,
  markMessageRead,
} from '../../features/messages/conversations/message-detail.ts';
import { sendProblem } from '../../features/messages/send/check-send.ts';
import { readIdempotencyKey, type SendResponse } from '../../features/messages/send/idempotency-keys.ts';
import type { SendPath, SendProgress } from '../../features/messages/send/outbound-messages.ts';
import { sendErrorOf } from '../../features/messages/send/send-error.ts';
import { sendOnce } from '../../features/messages/send/send-once.ts';
import { Envelope, type SendRequest } from '../../features/messages/send/send-request.ts';
import { typeOf } from '../../features/messages/send/upstream-payload.ts';
import { isMembers } from '../../platform/json/json-members.ts';
import { readPhoneNumber } from '../../platform/phone-number.ts';
import { storableProblem } from '../../platform/schema/problems.ts';
import type { ExternalApp, ExternalContext } from '../external/external-app.ts';
import { sendJsonText } from '../external/schema-kit.ts';
import { callUpstream } from '../external/upstream-calls.ts';
import { accountOf, SCOPES } from '../keys/api-key-auth.ts';
import { errorJson, errorParts, statusOfCode, wrongParameter } from './facade-error.ts';
import { FACADE_ROOTS, type ObjectRoute, requireNumber } from './facade-paths.ts';
import { asUpstreamReads } from './loose-content.ts';
import { withOurMediaIds } from './media-ids.ts';

const BODY_LIMIT_BYTES = 256 * 1024;

type SendRoute = ObjectRoute & { Body: unknown };

/** POST /{phone number id}/messages and /marketing_messages: sent as by our own API, answered as by upstream's. */
export function facadeSends(app: ExternalApp, context: ExternalContext): void {
  const options = {
    config: SCOPES.graph,
    bodyLimit: BODY_LIMIT_BYTES,
    onRequest: async (request: FastifyRequest) => {
      const { id } = request.params as SendRoute['Params'];
      await requireNumber(context.database, accountOf(request).wabaId, id);
    },
  };
  for (const upstreamPath of ['messages', 'marketing_messages'] as const satisfies SendPath[]) {
    for (const root of FACADE_ROOTS) {
      app.post<SendRoute>(`${root}/:id/${upstreamPath}`, options, async (request, reply) => {
        return await answerSend(context, request, reply, upstreamPath);
      });
    }
  }
}

async function answerSend(
  context: ExternalContext,
  request: FastifyRequest<SendRoute>,
  reply: FastifyReply,
  upstreamPath: SendPath,
): Promise<unknown> {
  const account = accountOf(request);
  const { id } = request.params;
  if (!isMembers(request.body)) throw wrongParameter('The body must be a JSON object.');
  if (request.body.status !== undefined) return await markRead(context, account.wabaId, id, request.body);
  const scheduling = ['sendAt', 'notAfter'].find((name) => Object.hasOwn(Object(request.body), name));
  if (scheduling !== undefined) {
    throw wrongParameter(`${scheduling}: Messages are scheduled with POST /api/external/messages alone.`);
  }
  const body = sendRequestOf(id, request.body);
  // A text that is read as JSON may hold what the body itself may not.
  const problem = storableProblem(body) ?? sendProblem(body);
  if (problem !== null) throw wrongParameter(`${problem.param}: ${problem.message}`);
  const key = readIdempotencyKey(request, `graph/${id}/${upstreamPath}`);
  const respond = (messageId: string, progress: SendProgress) =>
    facadeResponse({ body, messageId, traceId: request.id }, progress);
  const call = { account, body, key, respond, upstreamPath };
  const { response, replayed } = await sendOnce(context, call);
  if (replayed) reply.header('idempotent-replayed', 'true');
  return sendJsonText(reply.code(response.status), response.body);
}

const OWN_MEMBERS = new Set(Object.keys(Envelope.properties).filter((name) => name !== 'extra'));

/** The request of our API: members beside the content that it does not have go out as they are. */
function sendRequestOf(phoneNumberId: string, given: Record<string, unknown>): SendRequest {
  const request: Record<string, unknown> = { phoneNumberId };
  const extra: Record<string, unknown> = {};
  const type = typeOf(given);
  for (const [name, value] of Object.entries(given)) {
    if (value === null || name === 'phoneNumberId') continue;
    if (OWN_MEMBERS.has(name) || name === type) request[name] = withOurMediaIds(asUpstreamReads(name, value));
    else extra[name] = value;
  }
  return { ...request, phoneNumberId, ...(Object.keys(extra).length > 0 && { extra }) };
}

type Sent = { body: SendRequest; messageId: string; traceId: string };

/**
 * Upstream's answer to a send. A message that still waits after about 10 s is answered as accepted with an id of ours, as
 * a client that sent it again would send it twice.
 */
function facadeResponse({ body, messageId, traceId }: Sent, progress: SendProgress): SendResponse {
  const { state, upstreamId, upstreamStatus, waId } = progress;
  const error = sendErrorOf(progress.error);
  if (state === 'failed' || state === 'unknown') {
    const upstream = error?.upstream ?? null;
    if (state === 'failed' && typeof upstream?.code === 'number') {
      return { status: statusOfCode(upstream.code), body: JSON.stringify({ error: upstream }) };
    }
    const parts = errorParts(131_000, error?.message ?? 'The message was not sent.');
    return { status: parts.status, body: errorJson(parts, traceId) };
  }
  const input = body.to ?? body.recipient ?? '';
  const isGroup = body.recipient_type === 'group';
  const phone = waId ?? (isGroup ? input : (readPhoneNumber(input) ?? input));
  const ids = body.to === undefined ? { user_id: input } : { wa_id: phone };
  const message = {
    id: upstreamId ?? `local:${messageId}`,
    ...(isGroup && { group_id: input }),
    ...(upstreamStatus !== null && { message_status: upstreamStatus }),
  };
  const answer = { messaging_product: 'whatsapp', contacts: [{ input, ...ids }], messages: [message] };
  return { status: 200, body: JSON.stringify(answer) };
}

/** A read receipt, with a typing indicator if wanted: `{status: "read", message_id}`. */
async function markRead(
  context: ExternalContext,
  wabaId: string,
  phoneNumberId: string,
  body: Record<string, unknown>,
): Promise<{ success: true }> {
  const { status, message_id: upstreamId, typing_indicator: typing } = body;
  if (status !== 'read') throw wrongParameter('status: The parameter must be "read".');
  if (typeof upstreamId !== 'string' || upstreamId === '' || upstreamId.length > 512) {
    throw wrongParameter('message_id: The parameter must be the id of a message.');
  }
  const typingIndicator = isMembers(typing);
  await callUpstream(context, wabaId, (client, token) =>
    client.sendReadReceipt({ phoneNumberId, upstreamId, typingIndicator, token }),
  );
  const { database } = context;
  const id = await findInboundByUpstreamId(database, wabaId, { phoneNumberId, upstreamId });
  if (id !== null) await markMessageRead(database, wabaId, id);
  return { success: true };
}
