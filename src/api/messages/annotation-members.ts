import { editedMessageJson, reactionEmoji } from '../../messages/conversations/annotation-content.ts';
import type { MessageAnnotation } from '../../messages/conversations/message-annotations.ts';

/** What later messages made of one, given what there is about it in upstream's order of time. */
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

/** The newest content of an edited message as JSON text; null when it was not edited. */
export function editedContent(annotations: readonly MessageAnnotation[]): string | null {
  const content = annotations.findLast(({ type }) => type === 'edit')?.content ?? null;
  return content === null ? null : editedMessageJson(content);
}
