import type { FastifyInstance } from 'fastify';
import type { PhoneNumber } from '../demo-accounts.ts';
import { createRandomSource, outboundWamid } from '../payloads/sources.ts';
import type { JsonObject } from '../payloads/webhook-body.ts';
import type { UpstreamContext } from '../upstream-context.ts';
import { answerFault } from './fault-answer.ts';
import { type GraphFailure, invalidParameter, objectMissing } from './graph-failure.ts';
import { GRAPH_OBJECT_PATH, type GraphObjectRoute } from './graph-page.ts';
import { contentProblem } from './message-rules.ts';
import { templateProblem } from './message-templates.ts';

/** Takes a message and starts its status reports; answers with the body of a success. */
function accept(
  context: UpstreamContext,
  phone: PhoneNumber,
  send: SendRequest,
  body: unknown,
): Record<string, unknown> {
  // The structure of real ids holds a phone number; sends to user ids and groups use the digits of the id.
  const id = outboundWamid(
    send.waId ?? (send.userId ?? send.groupId ?? '').replace(/\D/g, ''),
    createRandomSource(),
  );
  context.sent.add({ at: new Date().toISOString(), id, phoneNumberId: phone.phoneNumberId, body });
  context.chat.add(
    {
      side: 'business',
      id,
      phoneNumberId: phone.phoneNumberId,
      customer: send.waId ?? send.userId ?? send.groupId ?? '',
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
    ...(send.groupId === undefined ? {} : { group: context.groups.recipientOf(send.groupId) }),
    ...(send.opaqueData === undefined ? {} : { opaqueData: send.opaqueData }),
  });
  const waId = send.waId ?? send.groupId;
  const recipient = waId === undefined ? { user_id: send.userId } : { wa_id: waId };
  return {
    messaging_product: 'whatsapp',
    contacts: [{ input: send.input, ...recipient }],
    messages: [{ id, ...(send.groupId === undefined ? {} : { group_id: send.groupId }) }],
  };
}

/** A send whose files and template the platform has. */
function readSend(
  context: UpstreamContext,
  { wabaId }: PhoneNumber,
  body: unknown,
): SendRequest | GraphFailure {
  const lost = mediaIdsOf(body).find(({ id }) => context.media.find(id) === undefined);
  if (lost === undefined) {
    const send = readSendRequest(body);
    return 'status' in send ? send : (templateProblem(context, wabaId, body as JsonObject) ?? send);
  }
  const details = `Param ${lost.kind}['id'] is not a valid whatsapp business account media attachment ID`;
  return invalidParameter(100, details);
}

const SENDS_PATH = `${GRAPH_OBJECT_PATH}/:edge(^(?:marketing_)?messages$)`;

/** POST /{version}/{phone}/messages and /marketing_messages: sends a message, or marks one as read. */
export function registerSendMessage(app: FastifyInstance, context: UpstreamContext): void {
  app.post<GraphObjectRoute>(SENDS_PATH, async (request, reply) => {
    const { id } = request.params;
    const phone = context.phones.find(id);
    if (phone === undefined) {
      const { status, body } = objectMissing(id);
      return reply.code(status).send(body);
    }
    const send = isReadReceipt(request.body) ? undefined : readSend(context, phone, request.body);
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

/** A send that the platform would accept. */
type SendRequest = {
  /** As the caller wrote it. */
  input: string;
  /** The recipient's phone number in digits, unless only a user id was named. */
  waId?: string;
  userId?: string;
  groupId?: string;
  opaqueData?: string;
};

const MAX_OPAQUE_CHARACTERS = 512;

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function recipientOf(body: Record<string, unknown>): SendRequest | undefined {
  if (body.recipient_type === 'group') {
    return typeof body.to === 'string' && body.to !== '' ? { input: body.to, groupId: body.to } : undefined;
  }
  if (typeof body.to === 'string' && /\d/.test(body.to)) {
    return { input: body.to, waId: body.to.replace(/\D/g, '') };
  }
  if (typeof body.recipient === 'string' && body.recipient !== '') {
    return { input: body.recipient, userId: body.recipient };
  }
  return undefined;
}

const MEDIA_KINDS = new Set(['image', 'video', 'audio', 'document', 'sticker']);

/** The files that a message names by their ids, at any depth. */
function mediaIdsOf(value: unknown, name = ''): { kind: string; id: string }[] {
  if (typeof value !== 'object' || value === null) {
    return [];
  }
  const { id } = value as { id?: unknown };
  const own = MEDIA_KINDS.has(name) && typeof id === 'string' ? [{ kind: name, id }] : [];
  return [...own, ...Object.entries(value).flatMap(([member, inner]) => mediaIdsOf(inner, member))];
}

/** True for anything but a body of a send: read receipts and typing indicators have a status. */
function isReadReceipt(body: unknown): boolean {
  return isObject(body) && body.status === 'read' && typeof body.message_id === 'string';
}

/** Checks a body as the platform does, in its order and with its codes. */
function readSendRequest(body: unknown): SendRequest | GraphFailure {
  if (!isObject(body) || body.messaging_product !== 'whatsapp') {
    return invalidParameter(100, 'The parameter messaging_product is required.');
  }
  const recipient = recipientOf(body);
  if (recipient === undefined) {
    return invalidParameter(131008, 'Required parameter to is missing');
  }
  const problem = contentProblem(body);
  if (problem !== undefined) {
    return problem;
  }
  const opaque = body.biz_opaque_callback_data;
  if (opaque === undefined) {
    return recipient;
  }
  if (typeof opaque !== 'string' || opaque.length > MAX_OPAQUE_CHARACTERS) {
    return invalidParameter(131009, 'Parameter biz_opaque_callback_data is not valid');
  }
  return { ...recipient, opaqueData: opaque };
}
