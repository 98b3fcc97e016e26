import { items, type JsonNode, member, stringOf } from '../../platform/json/json-text.ts';
import { idOf, rawIdOf, storableId, storableText } from '../../platform/json/storable-text.ts';
import { type AppMessage, readAppMessage, recipientOf } from './echoes.ts';
import { contactsOfSender, readContacts, readSender, type Sender, timestampOf } from './item-context.ts';

/** A copy of a message in a conversation that another responder has, with the customer of that conversation. */
export type CopiedMessage = AppMessage & { direction: 'inbound' | 'outbound'; customer: Sender };

export type CopiedStatus = { upstreamId: string; status: string; at: Date | null };

const MAX_STATUS_CHARS = 128;
const NOTHING = { otherPhone: null, parentUserId: null, name: null, username: null };

/**
 * The messages of a value of the field `standby`: what the customer wrote, and what the other responder sent, as it was given
 * to the Send API. The form is after webhooks/reference/standby below
 * developers.facebook.com/documentation/business-messaging/whatsapp. Groups, and what cannot be a message of a conversation,
 * are in the event alone.
 */
export function readCopies(value: JsonNode): CopiedMessage[] {
  const standby = member(value, 'standby');
  const contacts = standby === null ? null : readContacts(standby);
  const written = items(member(standby, 'messages')).map((message) => () => {
    const copy = readAppMessage(message);
    if (copy === null || contacts === null || rawIdOf(member(message, 'group_id')) !== null) return null;
    const [waId, userId] = [rawIdOf(member(message, 'from')), rawIdOf(member(message, 'from_user_id'))];
    const customer = readSender(message, contactsOfSender({ contacts }, { waId, userId }));
    return { ...copy, direction: 'inbound' as const, customer };
  });
  const sent = items(member(standby, 'message_echoes')).map((echo) => () => {
    const body = member(echo, 'message');
    const id = idOf(member(echo, 'id'));
    if (body === null || id === null || stringOf(member(body, 'recipient_type')) === 'group') return null;
    const copy = readAppMessage(body, id);
    if (copy === null) return null;
    const sentAt = timestampOf(member(echo, 'timestamp'));
    const customer = { ...NOTHING, ...recipientOf(body) };
    return { ...copy, sentAt, direction: 'outbound' as const, customer };
  });
  return [...written, ...sent].flatMap((read) => readable(read) ?? []);
}

/** Null for what names no customer, and for ids that are too long. */
function readable(read: () => CopiedMessage | null): CopiedMessage | null {
  try {
    const copy = read();
    return copy !== null && (copy.customer.waId !== null || copy.customer.userId !== null) ? copy : null;
  } catch {
    return null;
  }
}

/** The statuses of a value of the field `standby`, of whole messages to single customers. */
export function readCopiedStatuses(value: JsonNode): CopiedStatus[] {
  return items(member(member(value, 'standby'), 'statuses')).flatMap((status) => {
    const [id, name] = [rawIdOf(member(status, 'id')), stringOf(member(status, 'status'))];
    if (id === null || !name || stringOf(member(status, 'recipient_type')) === 'group') return [];
    try {
      const at = timestampOf(member(status, 'timestamp'));
      return [{ upstreamId: storableId(id), status: storableText(name, MAX_STATUS_CHARS), at }];
    } catch {
      return [];
    }
  });
}
