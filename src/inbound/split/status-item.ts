import { type JsonNode, member, sourceOf, stringOf } from '../../platform/json/json-text.ts';
import { idOf, rawIdOf, storableId, storableText } from '../../platform/json/storable-text.ts';
import { contactsOfRecipient } from './contact-book.ts';
import { type ItemBase, type ItemContext, ItemRefused } from './item-context.ts';
import { readRecipient } from './sender.ts';
import { timestampOf } from './upstream-timestamp.ts';

const MAX_STATUS_CHARS = 128;

/** A status of an outbound message. */
export type StatusItem = ItemBase & {
  kind: 'status';
  upstreamId: string;
  status: string;
  /** The group member it is about; upstream sends one status object per member under one id. */
  participant: string | null;
  at: Date | null;
  recipient: { waId: string | null; userId: string | null };
  /** The group that the message went to; null when it went to one person. */
  groupId: string | null;
  /** The upstream `errors` as they are written. */
  errorsJson: string | null;
  /** The upstream status object as it is written. */
  rawJson: string;
};

/** Turns one `statuses[]` entry about a message into an item. Throws ItemRefused and OversizedIdError. */
export function readStatusItem(entry: JsonNode, context: ItemContext, path: string): StatusItem {
  const rawId = rawIdOf(member(entry, 'id'));
  if (rawId === null) throw new ItemRefused('missing_id');
  const rawStatus = stringOf(member(entry, 'status'));
  if (!rawStatus) throw new ItemRefused('missing_status');
  const upstreamId = storableId(rawId);
  // Upstream's pages spell the first one both ways.
  const participantWaId =
    rawIdOf(member(entry, 'recipient_participant_id')) ?? rawIdOf(member(entry, 'participant_recipient_id'));
  const participantUserId = rawIdOf(member(entry, 'recipient_participant_user_id'));
  const rawParticipant = participantWaId ?? participantUserId;
  // A group status' recipient_id is the group.
  const isGroup = stringOf(member(entry, 'recipient_type')) === 'group' || rawParticipant !== null;
  const waId = isGroup ? participantWaId : rawIdOf(member(entry, 'recipient_id'));
  const userId = isGroup ? participantUserId : rawIdOf(member(entry, 'recipient_user_id'));
  const contacts = contactsOfRecipient(context.contacts, waId, userId);
  const errors = member(entry, 'errors');
  const rawJson = sourceOf(entry);
  return {
    kind: 'status',
    path,
    wabaId: context.wabaId,
    phoneNumberId: context.phoneNumberId,
    displayPhoneNumber: context.displayPhoneNumber,
    dedupKey: JSON.stringify(['status', context.phoneNumberId, rawId, rawStatus, rawParticipant]),
    laneKey: upstreamId,
    eventId: upstreamId,
    eventData: `{"metadata":${context.metadataJson},${contactsMember(contacts)}"status":${rawJson}}`,
    upstreamId,
    status: storableText(rawStatus, MAX_STATUS_CHARS),
    participant: rawParticipant === null ? null : storableId(rawParticipant),
    at: timestampOf(member(entry, 'timestamp')),
    recipient: readRecipient(waId, userId, contacts),
    groupId: isGroup ? idOf(member(entry, 'recipient_id')) : null,
    errorsJson: errors === null || errors.kind === 'null' ? null : sourceOf(errors),
    rawJson,
  };
}

/** Absent where upstream names nobody: it does so for the newer ids only. */
function contactsMember(contacts: readonly JsonNode[]): string {
  return contacts.length === 0 ? '' : `"contacts":[${contacts.map(sourceOf).join(',')}],`;
}
