import { member, parseJson, sourceOf, stringOf } from '../../platform/json/json-text.ts';

/** The emoji of a `reaction` message, given as JSON text; null when it takes the reaction back. */
export function reactionEmoji(messageJson: string): string | null {
  const message = parseJson(messageJson, { deepNodes: 'mark' });
  return stringOf(member(member(message, 'reaction'), 'emoji')) || null;
}

/** The new content that an `edit` message, given as JSON text, brings, as it is written; null when it brings none. */
export function editedMessageJson(messageJson: string): string | null {
  const edited = member(member(parseJson(messageJson, { deepNodes: 'mark' }), 'edit'), 'message');
  return edited?.kind === 'object' ? sourceOf(edited) : null;
}
