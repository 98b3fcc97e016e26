import type { FastifyInstance } from 'fastify';
import type { PhoneNumber } from '../demo-phone-numbers.ts';
import { createRandomSource } from '../payloads/random-source.ts';
import { outboundWamid } from '../payloads/wamid.ts';
import type { JsonObject } from '../payloads/webhook-body.ts';
import type { UpstreamContext } from '../upstream-context.ts';
import { answerFault } from './fault-answer.ts';
import { type GraphFailure, invalidParameter, objectMissing } from './graph-failure.ts';
import { GRAPH_OBJECT_PATH, type GraphObjectRoute } from './graph-paths.ts';
import { isReadReceipt, mediaIdsOf, readSendRequest, type SendRequest } from './send-request.ts';

/** Takes a message and starts its status reports; answers with the body of a success. */
function accept(
  context: UpstreamContext,
  phone: PhoneNumber,
  send: SendRequest,
  body: unknown,
): Record<string, unknown> {
  // The structure of real ids holds a phone number; sends to user ids use the digits of the id.
  const id = outboundWamid(send.waId ?? (send.userId ?? '').replace(/\D/g, ''), createRandomSource());
  context.sent.add({ at: new Date().toISOString(), id, phoneNumberId: phone.phoneNumberId, body });
  context.chat.add(
    {
      side: 'business',
      id,
      phoneNumberId: phone.phoneNumberId,
      customer: send.waId ?? send.userId ?? '',
      customerName: null,
      message: body as JsonObject,
    },
    'accepted',
  );
  context.ladder.start({
    id,
    phone,
    ...(send.waId === undefined ? {} : { recipientId: send.waId }),
    ...(send.userId === undefined ? {} : { recipientUserId: send.userId }),
    ...(send.opaqueData === undefined ? {} : { opaqueData: send.opaqueData }),
  });
  const recipient = send.waId === undefined ? { user_id: send.userId } : { wa_id: send.waId };
  return {
    messaging_product: 'whatsapp',
    contacts: [{ input: send.input, ...recipient }],
    messages: [{ id }],
  };
}

/** A send whose files the platform has. */
function readSend(context: UpstreamContext, body: unknown): SendRequest | GraphFailure {
  const lost = mediaIdsOf(body).find(({ id }) => context.media.find(id) === undefined);
  if (lost === undefined) {
    return readSendRequest(body);
  }
  const details = `Param ${lost.kind}['id'] is not a valid whatsapp business account media attachment ID`;
  return invalidParameter(100, details);
}

/** POST /{version}/{phone}/messages: sends a message, or marks one as read. */
export function registerSendMessage(app: FastifyInstance, context: UpstreamContext): void {
  app.post<GraphObjectRoute>(`${GRAPH_OBJECT_PATH}/messages`, async (request, reply) => {
    const { id } = request.params;
    const phone = context.phones.find(id);
    if (phone === undefined) {
      const { status, body } = objectMissing(id);
      return reply.code(status).send(body);
    }
    const send = isReadReceipt(request.body) ? undefined : readSend(context, request.body);
    const fault = context.faults.take('send', id);
    if (fault?.accepted && send !== undefined && !('status' in send)) {
      const accepted = accept(context, phone, send, request.body);
      return (await answerFault(context, reply, fault, { id })) ? reply : accepted;
    }
    if (fault !== undefined && (await answerFault(context, reply, fault, { id }))) {
      return reply;
    }
    if (send === undefined) {
      context.receipts.add({ at: new Date().toISOString(), phoneNumberId: id, body: request.body });
      context.chat.note((request.body as { message_id: string }).message_id, 'read');
      return { success: true };
    }
    return 'status' in send
      ? reply.code(send.status).send(send.body)
      : accept(context, phone, send, request.body);
  });
}
