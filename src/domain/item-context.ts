import { type ContactBook, readContactBook } from './contact-book.ts';
import { type JsonNode, member, sourceOf } from './json-text.ts';
import { MAX_ID_CHARS, rawIdOf, shortTextOf, storableText } from './storable-text.ts';

// Metadata and contacts are repeated in each event of a body; real ones have some hundred characters.
const MAX_CONTEXT_CHARS = 16_384;

/** Why a part of an upstream body becomes no event. */
export type SetAsideReason =
  | 'unknown_field'
  | 'value_errors'
  | 'message_echo'
  | 'missing_waba_id'
  | 'missing_metadata'
  | 'missing_id'
  | 'missing_status'
  | 'no_items'
  | 'too_deep'
  | 'oversized_context'
  | 'unreadable_item';

/** An item cannot become an event; it never leaves the domain, the item is set aside. */
export class ItemRefused extends Error {
  readonly reason: SetAsideReason;

  constructor(reason: SetAsideReason) {
    super(reason);
    this.name = 'ItemRefused';
    this.reason = reason;
  }
}

/** What all items of one upstream `value` share. */
export type ItemContext = {
  readonly wabaId: string;
  readonly phoneNumberId: string;
  readonly displayPhoneNumber: string | null;
  readonly metadataJson: string;
  readonly contacts: ContactBook;
};

/** What every item has. */
export type ItemBase = {
  /** Where it stands in the body: `entry[0].changes[1].value.messages[3]`. */
  path: string;
  wabaId: string;
  phoneNumberId: string;
  displayPhoneNumber: string | null;
  /** Equal for, and only for, deliveries of the same thing by upstream. A JSON array. */
  dedupKey: string;
  /** The base eventId: events with one lane key keep their order. */
  laneKey: string;
  eventId: string;
  /** JSON text of the event's `data`. */
  eventData: string;
};

function boundedIdOf(node: JsonNode | null): string | null {
  const id = rawIdOf(node);
  return id === null || id.length > MAX_ID_CHARS ? null : storableText(id, MAX_ID_CHARS);
}

/** The ids that say whose value it is, as far as they are there: for counting what is set aside. */
export function ownerIdsOf(entry: JsonNode, value: JsonNode | null) {
  return {
    wabaId: boundedIdOf(member(entry, 'id')),
    phoneNumberId: boundedIdOf(member(member(value, 'metadata'), 'phone_number_id')),
  };
}

/** The shared part of a value's items, or the reason why none of them can become an event. */
export function readItemContext(entry: JsonNode, value: JsonNode): ItemContext | SetAsideReason {
  const { wabaId, phoneNumberId } = ownerIdsOf(entry, value);
  const metadata = member(value, 'metadata');
  if (metadata === null || phoneNumberId === null) return 'missing_metadata';
  if (wabaId === null) return 'missing_waba_id';
  if (metadata.tooDeep) return 'too_deep';
  const metadataJson = sourceOf(metadata);
  if (metadataJson.length > MAX_CONTEXT_CHARS) return 'oversized_context';
  return {
    wabaId,
    phoneNumberId,
    displayPhoneNumber: shortTextOf(member(metadata, 'display_phone_number'), 64),
    metadataJson,
    contacts: readContactBook(value),
  };
}

/** JSON array of contacts entries as they are written. Throws ItemRefused. */
export function contactsJsonOf(contacts: readonly JsonNode[]): string {
  let lengthChars = 0;
  for (const contact of contacts) {
    if (contact.tooDeep) throw new ItemRefused('too_deep');
    lengthChars += contact.end - contact.start;
    if (lengthChars > MAX_CONTEXT_CHARS) throw new ItemRefused('oversized_context');
  }
  return `[${contacts.map(sourceOf).join(',')}]`;
}
