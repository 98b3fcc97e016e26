import {
  idOf,
  items,
  type JsonNode,
  member,
  sourceWithEdits,
  storableText,
  stringOf,
} from '../../platform/json/json-text.ts';
import { type PersonIds, timestampOf } from './item-context.ts';
import { mediaUrlRemovals, readContextId, readTargetId } from './upstream-items.ts';

/** A message that the business wrote to a customer in the WhatsApp Business app. */
export type Echo = {
  recipient: PersonIds;
  upstreamId: string;
  type: string;
  contextId: string | null;
  targetId: string | null;
  sentAt: Date | null;
  /** The upstream message as it is written, without the short-lived media `url`. */
  rawJson: string;
};

const MAX_TYPE_CHARS = 128;

/**
 * The messages of a value of the field `smb_message_echoes`; its form is after webhooks/reference/smb_message_echoes below
 * developers.facebook.com/documentation/business-messaging/whatsapp. What cannot be a message of a conversation is in
 * the event alone.
 */
export function readEchoes(value: JsonNode): Echo[] {
  return items(member(value, 'message_echoes')).flatMap((echo) => {
    try {
      return readEcho(echo) ?? [];
    } catch {
      // An id is too long.
      return [];
    }
  });
}

function readEcho(echo: JsonNode): Echo | null {
  const recipient = recipientOf(echo);
  const upstreamId = idOf(member(echo, 'id'));
  if (upstreamId === null || (recipient.waId === null && recipient.userId === null)) return null;
  const type = storableText(stringOf(member(echo, 'type')) || 'unknown', MAX_TYPE_CHARS);
  return {
    ...{ recipient, upstreamId, type },
    contextId: readContextId(echo, type),
    targetId: readTargetId(echo, type),
    sentAt: timestampOf(member(echo, 'timestamp')),
    rawJson: sourceWithEdits(echo, mediaUrlRemovals(echo)),
  };
}

const PHONE = /^\+?\d+$/;

/** Whom an echo is for. Throws OversizedIdError. */
export function recipientOf(echo: JsonNode): PersonIds {
  const to = idOf(member(echo, 'to'));
  return {
    waId: to !== null && PHONE.test(to) ? to.replace('+', '') : to,
    userId: idOf(member(echo, 'to_user_id')),
  };
}
