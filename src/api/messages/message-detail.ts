import { Type } from 'typebox';
import {
  listAnnotations,
  type MessageAnnotation,
} from '../../features/messages/conversations/message-annotations.ts';
import {
  findMessage,
  listMessageStatuses,
  type MessageDetail,
  type MessageStatus,
} from '../../features/messages/conversations/message-detail.ts';
import { listParticipants, type Participant } from '../../features/messages/conversations/participants.ts';
import { findThread } from '../../features/messages/conversations/thread.ts';
import { localMessageId } from '../../features/messages/messages.ts';
import { refusalAdvice, sendErrorOf } from '../../features/messages/send/send-error.ts';
import { isMembers, membersOf } from '../../platform/json/json-members.ts';
import { notFound } from '../errors/api-error.ts';
import type { ExternalContext } from '../external/external-app.ts';
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
    const isOthersThread = await isRefusedToOther(database, wabaId, message, statuses);
    const about = { statuses, annotations, participants: participants.get(message.id), isOthersThread };
    return sendJsonText(reply, detailJson(message, about, linkTo));
  },
});

/** Upstream may refuse a free-form message to the conversation of another responder after it has taken it, too. */
async function isRefusedToOther(
  database: ExternalContext['database'],
  wabaId: string,
  { sendState, type, conversationId }: MessageDetail,
  statuses: readonly MessageStatus[],
): Promise<boolean> {
  const isRefused = statuses.some(({ status }) => status === 'failed');
  if (sendState === null || type === 'template' || !isRefused) return false;
  return (await findThread(database, wabaId, conversationId))?.owner === 'other';
}

type AboutMessage = {
  isOthersThread: boolean;
  statuses: readonly MessageStatus[];
  annotations: readonly MessageAnnotation[];
  participants: readonly Participant[] | undefined;
};

function detailJson(
  message: MessageDetail,
  { statuses, annotations, participants, isOthersThread }: AboutMessage,
  linkTo: Parameters<typeof messageMembers>[2],
): string {
  return messageText(message, annotations, {
    ...messageMembers(message, annotations, linkTo),
    ...participantMembers(participants),
    ...(message.sendState !== null && outboundMembers(message)),
    statuses: statuses.map((status) => statusJson(status, isOthersThread)),
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

function statusJson(
  { status, at, receivedAt, content, participant }: MessageStatus,
  isOthersThread: boolean,
) {
  const { recipient_id: recipientId, pricing, conversation, errors } = membersOf(JSON.parse(content));
  return {
    status,
    timestamp: at?.toISOString() ?? null,
    receivedAt: receivedAt.toISOString(),
    ...(typeof recipientId === 'string' && { recipientId }),
    ...(participant !== '' && { participant }),
    ...(isMembers(pricing) && { pricing }),
    ...(isMembers(conversation) && { conversation }),
    ...(Array.isArray(errors) && {
      errors: errors.filter(isMembers).map((error) => withAdvice(error, isOthersThread)),
    }),
  };
}

function withAdvice(error: Record<string, unknown>, isOthersThread: boolean) {
  const advice = refusalAdvice(typeof error.code === 'number' ? error.code : null, isOthersThread);
  return { ...error, ...(advice !== null && { advice }) };
}
