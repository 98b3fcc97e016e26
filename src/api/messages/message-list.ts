import { listAnnotations, type MessageAnnotation } from '../../messages/conversations/message-annotations.ts';
import type { ConversationMessage } from '../../messages/conversations/message-columns.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { annotationMembers, editedContent } from './annotation-members.ts';
import { mediaAddress, mediaDescription, mediaErrorOf } from './media-members.ts';

/** Each message as JSON text, in which upstream's objects stand exactly as they are stored; one statement for all. */
export async function messageTexts(
  database: Database,
  wabaId: string,
  messages: readonly ConversationMessage[],
  publicUrl: string,
): Promise<string[]> {
  const annotationsOf = byMessage(await listAnnotations(database, wabaId, messages));
  return messages.map((message) => {
    const annotations = annotationsOf(message);
    return messageText(message, annotations, messageMembers(message, annotations, publicUrl));
  });
}

function byMessage(annotations: readonly MessageAnnotation[]) {
  const byTarget = Map.groupBy(annotations, ({ phoneNumberId, targetId }) => `${phoneNumberId} ${targetId}`);
  return ({ phoneNumberId, upstreamId }: ConversationMessage) =>
    byTarget.get(`${phoneNumberId} ${upstreamId}`) ?? [];
}

/** A message as JSON text: these members, then upstream's objects as they are written. */
export function messageText(
  { content }: ConversationMessage,
  annotations: readonly MessageAnnotation[],
  members: object,
): string {
  const edited = editedContent(annotations);
  const editedMember = edited === null ? '' : `,"editedMessage":${edited}`;
  return `${JSON.stringify(members).slice(0, -1)}${editedMember},"message":${content}}`;
}

/** All members of a message but upstream's objects, whose text is not to be parsed. */
export function messageMembers(
  row: ConversationMessage,
  annotations: readonly MessageAnnotation[],
  publicUrl: string,
) {
  return {
    serviceMessageId: row.id,
    metaMessageId: row.upstreamId,
    conversationId: row.conversationId,
    phoneNumberId: row.phoneNumberId,
    direction: row.direction,
    type: row.type,
    timestamp: row.sentAt?.toISOString() ?? null,
    createdAt: row.createdAt.toISOString(),
    ...(row.direction === 'inbound' && { readAt: row.readAt?.toISOString() ?? null }),
    state: row.sendState ?? (row.direction === 'inbound' ? 'received' : 'accepted'),
    status: row.status,
    statusAt: row.statusAt?.toISOString() ?? null,
    ...(row.contextId !== null && {
      contextId: row.contextId,
      replyTo: { serviceMessageId: row.repliedId, metaMessageId: row.contextId },
    }),
    ...(row.targetId !== null && { targetId: row.targetId }),
    ...(row.supersededBy !== null && { supersededBy: row.supersededBy }),
    ...(row.groupSender !== null && { sender: row.groupSender }),
    ...mediaMembers(row, publicUrl),
    ...annotationMembers(annotations),
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
