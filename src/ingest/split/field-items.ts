import { isUpstreamField } from '../../platform/event-type.ts';
import { items, type JsonNode, member, members, sourceOf, textOf } from '../../platform/json/json-text.ts';
import { boundedIdOf } from '../../platform/json/storable-text.ts';
import { readPhoneNumber } from '../../platform/phone-number.ts';
import { type ItemBase, ItemRefused, NO_WABA, type OwnerIds, timestampOf } from './item-context.ts';

/** A change in another field than `messages`. It belongs to its WABA, whether or not it names a phone number. */
export type FieldItem = Omit<ItemBase, 'phoneNumberId'> & {
  kind: 'upstream';
  phoneNumberId: string | null;
  field: string;
  valueJson: string;
  /** The time of the entry, where it has one. */
  reportedAt: Date | null;
  /** The digits of a number, where the entry names no WABA. */
  phone: string | null;
  /** About a customer of the operator as a partner: the operator is to know, also while no tenant has the WABA. */
  isOfPartner: boolean;
};

type FieldChange = { owner: OwnerIds; value: JsonNode | null; field: string | null; path: string };

/** Ids of what a value is about: in the value itself, otherwise in the first entry of a list in it. */
const OBJECT_IDS = [
  'message_template_id',
  'flow_id',
  'group_id',
  'configuration_name',
  'solution_id',
  'entity_id',
  'wa_id',
  'user_id',
  'id',
  'display_phone_number',
];

/** Where the object is not what has an id: echoes are about the customer whom the business wrote to. */
const IDS_OF_FIELD: Readonly<Record<string, readonly string[]>> = {
  smb_message_echoes: ['to', 'to_user_id'],
  messaging_handovers: ['phone_number'],
  standby: ['from', 'to', 'recipient', 'recipient_id', 'from_user_id', 'recipient_user_id'],
};

/** The object, or the one with the lists of objects, within a value that has neither itself. */
const OBJECTS_OF_FIELD: Readonly<Record<string, (value: JsonNode) => JsonNode | null>> = {
  messaging_handovers: (value) => member(value, 'sender'),
  standby: (value) => member(value, 'standby'),
};

const NO_OBJECTS = new Set(['contacts', 'errors']);

/** Reads a change whose contents are none of the six events. Throws ItemRefused. */
export function readFieldItem({ owner, value, field, path }: FieldChange, time: JsonNode | null): FieldItem {
  const { wabaId, phoneNumberId } = owner;
  if (field === null || !isUpstreamField(field)) throw new ItemRefused('unknown_field');
  if (wabaId === null) throw new ItemRefused('missing_waba_id');
  if (value?.tooDeep) throw new ItemRefused('too_deep');
  const valueJson = value === null ? 'null' : sourceOf(value);
  const phone = wabaId === NO_WABA ? phoneIn(value) : null;
  const eventId = `upstream.${field}:${objectOf(field, value) ?? phoneNumberId ?? phone ?? wabaId}`;
  return {
    kind: 'upstream',
    path,
    wabaId,
    phoneNumberId,
    field,
    valueJson,
    reportedAt: timestampOf(time),
    phone,
    isOfPartner: wabaId === NO_WABA || (field === 'account_update' && member(value, 'waba_info') !== null),
    // The time of the entry distinguishes a state that returns from one that is reported twice.
    dedupKey: JSON.stringify(['upstream', wabaId, field, textOf(time), valueJson]),
    laneKey: eventId,
    eventId,
    eventData: `{"field":${JSON.stringify(field)},"value":${valueJson}}`,
  };
}

function phoneIn(value: JsonNode | null): string | null {
  const named = member(value, 'phone_number') ?? member(value, 'display_phone_number');
  return readPhoneNumber(textOf(named) ?? '');
}

function objectOf(field: string, whole: JsonNode | null): string | null {
  if (whole?.kind !== 'object') return null;
  const value = OBJECTS_OF_FIELD[field]?.(whole) ?? whole;
  const names = IDS_OF_FIELD[field] ?? OBJECT_IDS;
  const own = firstIdOf(value, names);
  if (own !== null) return own;
  for (const { name, value: list } of members(value)) {
    const [first] = list.kind === 'array' && !NO_OBJECTS.has(textOf(name) ?? '') ? items(list) : [];
    // A copy of what another responder sent has whom it was for within.
    const id =
      first?.kind === 'object'
        ? (firstIdOf(first, names) ?? firstIdOf(member(first, 'message'), names))
        : null;
    if (id !== null) return id;
  }
  return null;
}

function firstIdOf(node: JsonNode | null, names: readonly string[]): string | null {
  for (const name of names) {
    const id = boundedIdOf(member(node, name));
    if (id !== null) return id;
  }
  return null;
}
