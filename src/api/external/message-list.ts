import { Type } from 'typebox';
import type { ConversationMessage } from '../../database/conversation-messages.ts';
import { MediaError, mediaAddress, mediaDescription, mediaErrorOf } from './media-members.ts';
import { nullable } from './nullable.ts';

/** A message as lists and the message itself show it. */
export const Message = Type.Object({
  serviceMessageId: Type.String(),
  /** Null until upstream has accepted an outbound message. */
  metaMessageId: nullable(Type.String()),
  conversationId: Type.String(),
  phoneNumberId: Type.String(),
  direction: Type.Enum(['inbound', 'outbound']),
  type: Type.String(),
  timestamp: nullable(Type.String({ format: 'date-time' })),
  createdAt: Type.String({ format: 'date-time' }),
  status: nullable(Type.String()),
  statusAt: nullable(Type.String({ format: 'date-time' })),
  contextId: Type.Optional(Type.String()),
  targetId: Type.Optional(Type.String()),
  mediaPending: Type.Boolean(),
  mediaUrl: nullable(Type.String()),
  mediaError: Type.Optional(MediaError),
  mediaType: Type.Optional(Type.String()),
  mimeType: Type.Optional(Type.String()),
  caption: Type.Optional(Type.String()),
  fileName: Type.Optional(Type.String()),
  message: Type.Object({}, { additionalProperties: true }),
});

/** The answer of the conversation messages endpoint. */
export const MessageList = Type.Object({
  data: Type.Array(Message),
  hasMore: Type.Boolean(),
  nextCursor: nullable(Type.String()),
});

type Page = { rows: readonly ConversationMessage[]; hasMore: boolean; nextCursor: string | null };

/** The list as JSON text, in which each upstream object stands exactly as it is stored. */
export function messageListJson({ rows, hasMore, nextCursor }: Page, publicUrl: string): string {
  const data = rows.map((row) => messageJson(row, publicUrl)).join(',');
  return `{"data":[${data}],"hasMore":${hasMore},"nextCursor":${JSON.stringify(nextCursor)}}`;
}

function messageJson(row: ConversationMessage, publicUrl: string): string {
  const members = JSON.stringify(messageMembers(row, publicUrl));
  return `${members.slice(0, -1)},"message":${row.content}}`;
}

/** All members of a message but `message`, whose text is not to be parsed. */
export function messageMembers(row: ConversationMessage, publicUrl: string) {
  return {
    serviceMessageId: row.id,
    metaMessageId: row.upstreamId,
    conversationId: row.conversationId,
    phoneNumberId: row.phoneNumberId,
    direction: row.direction,
    type: row.type,
    timestamp: row.sentAt?.toISOString() ?? null,
    createdAt: row.createdAt.toISOString(),
    status: row.status,
    statusAt: row.statusAt?.toISOString() ?? null,
    ...(row.contextId !== null && { contextId: row.contextId }),
    ...(row.targetId !== null && { targetId: row.targetId }),
    ...mediaMembers(row, publicUrl),
  };
}

function mediaMembers(row: ConversationMessage, publicUrl: string) {
  return {
    mediaPending: row.mediaState === 'pending',
    mediaUrl: mediaAddress(row, publicUrl).mediaUrl,
    ...mediaErrorOf(row),
    ...(row.mediaType !== null && { mediaType: row.mediaType }),
    ...(row.mimeType !== null && { mimeType: row.mimeType }),
    ...mediaDescription(row),
  };
}
