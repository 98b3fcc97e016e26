import type { MediaReference } from '../../features/messages/media/media.ts';
import { items, type JsonNode, member, sourceWithEdits, stringOf } from '../../platform/json/json-text.ts';
import { idOf, storableText } from '../../platform/json/storable-text.ts';
import { type PersonIds, timestampOf, waIdOf } from './item-context.ts';
import { mediaUrlRemovals, readMediaReference } from './media-references.ts';
import { readContextId, readTargetId } from './message-items.ts';

export type AppMessage = {
  upstreamId: string;
  type: string;
  contextId: string | null;
  targetId: string | null;
  sentAt: Date | null;
  media: MediaReference | null;
  /** The upstream message as it is written, without the short-lived media `url`. */
  rawJson: string;
};

export type Echo = AppMessage & { recipient: PersonIds };

const MAX_TYPE_CHARS = 128;

/**
 * The messages of a value of the field `smb_message_echoes`; its form is after webhooks/reference/smb_message_echoes below
 * developers.facebook.com/documentation/business-messaging/whatsapp. What cannot be a message of a conversation is in
 * the event alone.
 */
export function readEchoes(value: JsonNode): Echo[] {
  return items(member(value, 'message_echoes')).flatMap((echo) => {
    try {
      const message = readAppMessage(echo);
      const recipient = recipientOf(echo);
      if (message === null || (recipient.waId === null && recipient.userId === null)) return [];
      return [{ ...message, recipient }];
    } catch {
      // An id is too long.
      return [];
    }
  });
}

/** Null for what has no id, in itself or as given. Throws OversizedIdError. */
export function readAppMessage(message: JsonNode, id: string | null = null): AppMessage | null {
  const upstreamId = id ?? idOf(member(message, 'id'));
  if (upstreamId === null) return null;
  const type = storableText(stringOf(member(message, 'type')) || 'unknown', MAX_TYPE_CHARS);
  return {
    upstreamId,
    type,
    contextId: readContextId(message, type),
    targetId: readTargetId(message, type),
    sentAt: timestampOf(member(message, 'timestamp')),
    media: fileOf(message),
    rawJson: sourceWithEdits(message, mediaUrlRemovals(message)),
  };
}

/** Without an id there is nothing to fetch, and no fault: history comes without ids at first. */
function fileOf(message: JsonNode): MediaReference | null {
  const media = readMediaReference(message);
  return media === null || media.upstreamMediaId === null ? null : media;
}

/** Whom an echo is for, or what was given to the Send API. Throws OversizedIdError. */
export function recipientOf(echo: JsonNode): PersonIds {
  const to = idOf(member(echo, 'to'));
  const userId = idOf(member(echo, 'to_user_id')) ?? idOf(member(echo, 'recipient'));
  return { waId: to === null ? null : waIdOf(to), userId };
}
