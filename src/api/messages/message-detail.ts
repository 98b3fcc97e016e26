import { Type } from 'typebox';
import {
  findMessage,
  listMessageStatuses,
  type MessageDetail,
  type MessageStatus,
} from '../../features/messages/conversations/message-detail.ts';
import {
  listAnnotations,
  type MessageAnnotation,
} from '../../features/messages/conversations/message-list.ts';
import { listParticipants, type Participant } from '../../features/messages/conversations/participants.ts';
import { localMessageId } from '../../features/messages/messages.ts';
import { sendErrorOf } from '../../features/messages/send/send-error.ts';
import { sendErrorAdvice } from '../../features/messages/send/upstream-errors.ts';
import { isMembers, membersOf } from '../../platform/json/json-members.ts';
import { notFound } from '../errors/api-error.ts';
import {
  AnyObject,
  count,
  dateTime,
  named,
  nullable,
  objectPath,
  sendJsonText,
  text,
  upstreamObject,
} from '../external/schema-kit.ts';
import { restOperation } from '../operations/operation.ts';
import { Message, messageMembers, messageText, participantMembers } from './message-json.ts';

const Status = named('MessageStatus', {
  status: text('delivered'),
  timestamp: nullable(dateTime(), '2026-11-21T09:30:04.000Z'),
  receivedAt: dateTime('2026-11-21T09:30:04.310Z'),
  recipientId: Type.Optional(text('12025550143')),
  /** Of a message to a group: the member it is about; absent: all of it. */
  participant: Type.Optional(text('12025550143')),
  pricing: Type.Optional(
    upstreamObject({ billable: true, pricing_model: 'PMP', type: 'regular', category: 'utility' }),
  ),
  conversation: Type.Optional(AnyObject),
  errors: Type.Optional(Type.Array(AnyObject)),
});

const DetailedMessage = named('MessageDetails', {
  ...Message.properties,
  to: Type.Optional(text('+12025550143')),
  recipient: Type.Optional(Type.String()),
  waId: Type.Optional(Type.String()),
  attempts: Type.Optional(count(1)),
  messageStatus: Type.Optional(Type.String()),
  error: Type.Optional(
    Type.Object({
      code: Type.String(),
      message: Type.String(),
      advice: Type.Optional(Type.String()),
      upstream: Type.Optional(AnyObject),
    }),
  ),
  statuses: Type.Array(Status),
});

/** A message to a group has a status for each member. */
const MAX_STATUSES = 1_000;

export const getMessage = restOperation({
  id: 'getMessage',
  method: 'GET',
  path: '/api/external/messages/:id',
  scope: 'read',
  summary: 'Get a message',
  description: 'Inbound or outbound, with its state and each status that upstream reported.',
  tag: 'Messages',
  ...objectPath('The `serviceMessageId`.', '1042'),
  answers: {
    200: {
      schema: DetailedMessage,
      description: 'The message.',
      example: {
        serviceMessageId: '4711',
        metaMessageId: 'wamid.HBgLMTIwMjU1NTAxNDMVAgARGBJDQTBERjJDOTVBQTE0NEMxRDAA',
        direction: 'outbound',
        type: 'text',
        status: 'delivered',
        statusAt: '2026-11-21T09:30:04.000Z',
        mediaUrl: null,
        state: 'accepted',
        message: {
          phoneNumberId: '800000000000111',
          to: '+12025550143',
          type: 'text',
          text: { body: 'Your order is ready.' },
        },
      },
    },
  },
  run: async ({ database, wabaId, mediaUrls, reply }, { id }) => {
    const message = await findMessage(database, wabaId, id);
    if (message === null) throw notFound();
    const { phoneNumberId } = message;
    const upstreamId = message.upstreamId ?? localMessageId(message.id);
    const [statuses, annotations, linkTo, participants] = await Promise.all([
      listMessageStatuses(database, { phoneNumberId, upstreamId }, MAX_STATUSES),
      listAnnotations(database, wabaId, [message]),
      mediaUrls.linksOf(wabaId),
      listParticipants(database, [message]),
    ]);
    const about = { statuses, annotations, participants: participants.get(message.id) };
    return sendJsonText(reply, detailJson(message, about, linkTo));
  },
});

type AboutMessage = {
  statuses: readonly MessageStatus[];
  annotations: readonly MessageAnnotation[];
  participants: readonly Participant[] | undefined;
};

function detailJson(
  message: MessageDetail,
  { statuses, annotations, participants }: AboutMessage,
  linkTo: Parameters<typeof messageMembers>[2],
): string {
  return messageText(message, annotations, {
    ...messageMembers(message, annotations, linkTo),
    ...participantMembers(participants),
    ...(message.sendState !== null && outboundMembers(message)),
    statuses: statuses.map(statusJson),
  });
}

function outboundMembers({ content, attempts, upstreamStatus, waId, sendError }: MessageDetail) {
  const { to, recipient } = JSON.parse(content) as { to?: string; recipient?: string };
  const error = sendErrorOf(sendError);
  return {
    ...(to !== undefined && { to }),
    ...(recipient !== undefined && { recipient }),
    ...(waId !== null && { waId }),
    attempts: attempts ?? 0,
    ...(upstreamStatus !== null && { messageStatus: upstreamStatus }),
    ...(error !== null && {
      error: {
        code: error.code,
        message: error.message,
        ...(error.advice !== null && { advice: error.advice }),
        ...(error.upstream !== null && { upstream: error.upstream }),
      },
    }),
  };
}

function statusJson({ status, at, receivedAt, content, participant }: MessageStatus) {
  const { recipient_id: recipientId, pricing, conversation, errors } = membersOf(JSON.parse(content));
  return {
    status,
    timestamp: at?.toISOString() ?? null,
    receivedAt: receivedAt.toISOString(),
    ...(typeof recipientId === 'string' && { recipientId }),
    ...(participant !== '' && { participant }),
    ...(isMembers(pricing) && { pricing }),
    ...(isMembers(conversation) && { conversation }),
    ...(Array.isArray(errors) && { errors: errors.filter(isMembers).map(withAdvice) }),
  };
}

function withAdvice(error: Record<string, unknown>) {
  const advice = typeof error.code === 'number' ? sendErrorAdvice(error.code) : null;
  return { ...error, ...(advice !== null && { advice }) };
}
