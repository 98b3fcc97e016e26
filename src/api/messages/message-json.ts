import { type Static, Type } from 'typebox';
import { CALL_STATES, callIdOf, readCall } from '../../features/messages/calls.ts';
import {
  editedMessageJson,
  listAnnotations,
  type MessageAnnotation,
  reactionEmoji,
} from '../../features/messages/conversations/message-annotations.ts';
import type {
  ConversationMessage,
  MessageMedia,
} from '../../features/messages/conversations/message-list.ts';
import { listParticipants, type Participant } from '../../features/messages/conversations/participants.ts';
import type { MediaLink, MediaUrls } from '../../features/messages/media/media-urls.ts';
import type { Database } from '../../platform/postgres/database.ts';
import {
  AnyObject,
  dateTime,
  listOf,
  named,
  nullable,
  text,
  upstreamObject,
} from '../external/schema-kit.ts';

type LinkTo = (objectKey: string) => MediaLink;

/** Upstream's objects stand in the JSON text exactly as they are stored; one statement serves all messages. */
export async function messageTexts(
  database: Database,
  wabaId: string,
  messages: readonly ConversationMessage[],
  mediaUrls: MediaUrls,
): Promise<string[]> {
  const [annotations, linkTo, participants] = await Promise.all([
    listAnnotations(database, wabaId, messages),
    mediaUrls.linksOf(wabaId),
    listParticipants(database, messages),
  ]);
  const annotationsOf = byMessage(annotations);
  return messages.map((message) => {
    const annotations = annotationsOf(message);
    return messageText(message, annotations, {
      ...messageMembers(message, annotations, linkTo),
      ...participantMembers(participants.get(message.id)),
    });
  });
}

function byMessage(annotations: readonly MessageAnnotation[]) {
  const byTarget = Map.groupBy(annotations, ({ phoneNumberId, targetId }) => `${phoneNumberId} ${targetId}`);
  return ({ phoneNumberId, upstreamId }: ConversationMessage) =>
    byTarget.get(`${phoneNumberId} ${upstreamId}`) ?? [];
}

/** The members, then upstream's objects as they are written. */
export function messageText(
  { content }: ConversationMessage,
  annotations: readonly MessageAnnotation[],
  members: object,
): string {
  const edited = editedContent(annotations);
  const editedMember = edited === null ? '' : `,"editedMessage":${edited}`;
  return `${JSON.stringify(members).slice(0, -1)}${editedMember},"message":${content}}`;
}

export function messageMembers(
  row: ConversationMessage,
  annotations: readonly MessageAnnotation[],
  linkTo: LinkTo,
) {
  const callId = callIdOf(row.upstreamId);
  return {
    serviceMessageId: row.id,
    metaMessageId: callId ?? row.upstreamId,
    conversationId: row.conversationId,
    phoneNumberId: row.phoneNumberId,
    direction: row.direction,
    type: row.type,
    ...(row.origin !== null && { origin: row.origin }),
    timestamp: row.sentAt?.toISOString() ?? null,
    createdAt: row.createdAt.toISOString(),
    ...(row.direction === 'inbound' && { readAt: row.readAt?.toISOString() ?? null }),
    state: row.sendState ?? (row.direction === 'inbound' ? 'received' : 'accepted'),
    ...(row.sendAt !== null && { sendAt: row.sendAt.toISOString() }),
    ...(row.notAfter !== null && { notAfter: row.notAfter.toISOString() }),
    status: row.status,
    statusAt: row.statusAt?.toISOString() ?? null,
    ...(row.contextId !== null && {
      contextId: row.contextId,
      replyTo: { serviceMessageId: row.repliedId, metaMessageId: row.contextId },
    }),
    ...(row.targetId !== null && { targetId: row.targetId }),
    ...(row.supersededBy !== null && { supersededBy: row.supersededBy }),
    ...(row.groupSender !== null && { sender: row.groupSender }),
    ...(callId !== null && { call: callMembers(row.content) }),
    ...mediaMembers(row, linkTo),
    ...annotationMembers(annotations),
  };
}

function callMembers(content: string) {
  const { state, startedAt, endedAt, durationSeconds, errorCode } = readCall(content);
  return {
    state,
    startedAt: startedAt?.toISOString() ?? null,
    endedAt: endedAt?.toISOString() ?? null,
    durationSeconds,
    errorCode,
  };
}

export function participantMembers(participants: readonly Participant[] = []) {
  if (participants.length === 0) return {};
  return {
    participants: participants.map(({ participant, status, at }) => ({
      participant,
      status,
      statusAt: at?.toISOString() ?? null,
    })),
  };
}

function mediaMembers(row: ConversationMessage, linkTo: LinkTo) {
  return {
    mediaPending: row.mediaState === 'pending',
    mediaUrl: mediaAddress(row, linkTo).mediaUrl,
    ...mediaErrorOf(row),
    ...(row.mediaType !== null && { mediaType: row.mediaType }),
    ...(row.mimeType !== null && { mimeType: row.mimeType }),
    ...mediaDescription(row),
  };
}

/** The annotations come in upstream's order of time. */
export function annotationMembers(annotations: readonly MessageAnnotation[]) {
  const edit = annotations.findLast(({ type }) => type === 'edit');
  const revoke = annotations.findLast(({ type }) => type === 'revoke');
  return {
    reactions: annotations.flatMap(reactionOf),
    ...(edit !== undefined && { editedAt: edit.at.toISOString(), editedBy: edit.id }),
    ...(revoke !== undefined && { revokedAt: revoke.at.toISOString() }),
  };
}

function reactionOf({ type, content, direction, at, id, upstreamId }: MessageAnnotation) {
  const emoji = type === 'reaction' && content !== null ? reactionEmoji(content) : null;
  if (emoji === null) return [];
  const from = direction === 'inbound' ? 'customer' : 'business';
  return [{ emoji, from, at: at.toISOString(), serviceMessageId: id, metaMessageId: upstreamId }];
}

/** JSON text; null when the message was not edited. */
export function editedContent(annotations: readonly MessageAnnotation[]): string | null {
  const content = annotations.findLast(({ type }) => type === 'edit')?.content ?? null;
  return content === null ? null : editedMessageJson(content);
}

export const MediaError = named('MediaError', { code: Type.String(), message: Type.String() });

/** Both null unless the file is stored. */
export function mediaAddress(
  media: MessageMedia,
  linkTo: LinkTo,
): { mediaPath: string | null; mediaUrl: string | null } {
  if (media.mediaState !== 'stored' || media.objectKey === null) return { mediaPath: null, mediaUrl: null };
  return linkTo(media.objectKey);
}

/** Absent unless the media will never be there. */
export function mediaErrorOf(media: MessageMedia): { mediaError?: Static<typeof MediaError> } {
  if (media.mediaState === 'expired') {
    const message = 'The business keeps files no longer than this.';
    return { mediaError: { code: 'file_expired', message } };
  }
  if (media.mediaState !== 'failed') return {};
  return {
    mediaError: {
      code: media.errorCode ?? 'unknown',
      message: media.errorMessage ?? 'The media could not be stored.',
    },
  };
}

export function mediaDescription(media: MessageMedia): { caption?: string; fileName?: string } {
  return {
    ...(media.caption !== null && { caption: media.caption }),
    ...(media.fileName !== null && { fileName: media.fileName }),
  };
}

const DATE_TIME = Type.String({ format: 'date-time' });

const META_ID = 'wamid.HBgLMTIwMjU1NTAxNDMVAgASGBQzQUEyOUI4MDVFNjE0NEU0NzgwMAA=';

const Reaction = named('MessageReaction', {
  emoji: Type.String(),
  from: Type.Enum(['customer', 'business']),
  at: DATE_TIME,
  serviceMessageId: Type.String(),
  metaMessageId: Type.String(),
});

/** How far a message is; `received` for inbound ones. */
const MESSAGE_STATES = [
  'received',
  'scheduled',
  'queued',
  'sending',
  'accepted',
  'failed',
  'unknown',
  'cancelled',
];

export const Message = named('Message', {
  serviceMessageId: text('1042'),
  /** Null until upstream has accepted an outbound message. */
  metaMessageId: nullable(Type.String(), META_ID),
  conversationId: text('42'),
  phoneNumberId: text('800000000000111'),
  direction: Type.Enum(['inbound', 'outbound']),
  type: text('image'),
  /** business_app: the business wrote it in the WhatsApp Business app; history: before the number came to the platform; other_responder: a copy of what another responder has. Absent: it came or was sent through the platform. */
  origin: Type.Optional(Type.Enum(['business_app', 'history', 'other_responder'])),
  timestamp: nullable(DATE_TIME, '2026-11-21T09:29:58.000Z'),
  createdAt: dateTime('2026-11-21T09:30:00.001Z'),
  /** Of inbound messages: when the business marked it as read by its own id; marking a later one does not count. */
  readAt: Type.Optional(Type.Union([DATE_TIME, Type.Null()])),
  state: Type.Enum(MESSAGE_STATES),
  /** Of a scheduled message: when it is sent. */
  sendAt: Type.Optional(DATE_TIME),
  /** Of a scheduled message: when it fails instead. */
  notAfter: Type.Optional(DATE_TIME),
  status: nullable(Type.String()),
  statusAt: nullable(DATE_TIME),
  contextId: Type.Optional(Type.String()),
  replyTo: Type.Optional(
    Type.Object({ serviceMessageId: nullable(Type.String()), metaMessageId: Type.String() }),
  ),
  targetId: Type.Optional(Type.String()),
  /** Of a placeholder: the message that upstream sent under its id later. */
  supersededBy: Type.Optional(Type.String()),
  /** Of a group's messages: who of the group wrote it, the user id if there is one, else the wa_id. */
  sender: Type.Optional(Type.String()),
  /** Of a message to a group: the furthest status of each member that upstream has reported on. */
  participants: Type.Optional(
    Type.Array(
      named('MessageParticipant', {
        participant: text('12025550143'),
        status: text('read'),
        statusAt: nullable(DATE_TIME),
      }),
    ),
  ),
  /** Of a call, whose type is `call`: what upstream has reported of it so far. */
  call: Type.Optional(
    named('MessageCall', {
      state: Type.Enum([...CALL_STATES]),
      startedAt: nullable(DATE_TIME, '2026-11-21T09:30:05.000Z'),
      endedAt: nullable(DATE_TIME, '2026-11-21T09:32:05.000Z'),
      durationSeconds: nullable(Type.Integer(), 120),
      /** Upstream's code of a call that failed. */
      errorCode: nullable(Type.Integer()),
    }),
  ),
  mediaPending: Type.Boolean(),
  mediaUrl: nullable(
    Type.String(),
    'https://gateway.example/received_media/pP0mK1v3rQ9sZ2xYb7Lw4tNc6uHd8eFa',
  ),
  mediaError: Type.Optional(MediaError),
  mediaType: Type.Optional(text('image')),
  mimeType: Type.Optional(text('image/jpeg')),
  caption: Type.Optional(text('Front door')),
  fileName: Type.Optional(Type.String()),
  reactions: Type.Array(Reaction, { examples: [[]] }),
  editedAt: Type.Optional(DATE_TIME),
  /** The edit message, which has the media that the edit brought. */
  editedBy: Type.Optional(Type.String()),
  editedMessage: Type.Optional(AnyObject),
  revokedAt: Type.Optional(DATE_TIME),
  message: upstreamObject({
    from: '12025550143',
    id: META_ID,
    timestamp: '1790000007',
    type: 'image',
    image: { caption: 'Front door', mime_type: 'image/jpeg', id: '6000000000000001' },
  }),
});

export const MessageList = listOf(Message);
