import { type JsonNode, member, sourceOf } from '../../platform/json/json-text.ts';
import { boundedIdOf, shortTextOf } from '../../platform/json/storable-text.ts';
import { type ContactBook, readContactBook } from './contact-book.ts';

// Metadata is repeated in each event of a value; real ones have a hundred characters.
const MAX_METADATA_CHARS = 16_384;

/** Why a part of an upstream body becomes no event. */
export type QuarantineReason =
  | 'unknown_field'
  | 'value_errors'
  | 'message_echo'
  | 'missing_waba_id'
  | 'missing_metadata'
  | 'missing_id'
  | 'missing_status'
  | 'no_items'
  | 'too_deep'
  | 'oversized_metadata'
  | 'unreadable_item';

/** An item cannot become an event; it never leaves the domain, the item is quarantined. */
export class ItemRefused extends Error {
  readonly reason: QuarantineReason;

  constructor(reason: QuarantineReason) {
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

/** Whose value it is, as far as it says so. */
export type OwnerIds = { readonly wabaId: string | null; readonly phoneNumberId: string | null };

/** The WABA an entry belongs to; null when it does not say. */
export function wabaIdOf(entry: JsonNode): string | null {
  return boundedIdOf(member(entry, 'id'));
}

/** The phone number a value belongs to; null when it does not say. */
export function phoneNumberIdOf(value: JsonNode | null): string | null {
  return boundedIdOf(member(member(value, 'metadata'), 'phone_number_id'));
}

/** The shared part of a value's items, or the reason why none of them can become an event. */
export function readItemContext(owner: OwnerIds, value: JsonNode): ItemContext | QuarantineReason {
  const { wabaId, phoneNumberId } = owner;
  const metadata = member(value, 'metadata');
  if (metadata === null || phoneNumberId === null) return 'missing_metadata';
  if (wabaId === null) return 'missing_waba_id';
  if (metadata.tooDeep) return 'too_deep';
  const metadataJson = sourceOf(metadata);
  if (metadataJson.length > MAX_METADATA_CHARS) return 'oversized_metadata';
  return {
    wabaId,
    phoneNumberId,
    displayPhoneNumber: shortTextOf(member(metadata, 'display_phone_number'), 64),
    metadataJson,
    contacts: readContactBook(value),
  };
}
