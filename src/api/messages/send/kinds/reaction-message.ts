import { Type } from 'typebox';
import { messageKind } from './message-kind.ts';
import { strict, UpstreamId } from './schema-parts.ts';

const MAX_EMOJI_CHARS = 64;

/** An empty `emoji` takes the reaction back. */
export const reactionMessage = messageKind({
  type: 'reaction',
  content: strict({ message_id: UpstreamId, emoji: Type.String({ maxLength: MAX_EMOJI_CHARS }) }),
});
