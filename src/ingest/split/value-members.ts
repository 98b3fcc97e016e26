import {
  items,
  type JsonNode,
  member,
  members,
  parseJson,
  sourceWithEdits,
  stringOf,
} from '../../platform/json/json-text.ts';
import { memberRemovals } from './member-removals.ts';

const LISTS = ['messages', 'statuses'];
const OF_ITEMS = new Set(['messaging_product', 'metadata', 'contacts', ...LISTS]);

/** As much is repeated in each event of a value; a summary of a conversation has some hundred characters. */
const MAX_CHARS = 16_384;

/** The members of a value beside its items: nothing is known of them, so they travel as they are written. */
export type OtherMembers = {
  /** A JSON object of those that go with each item; null: there are none. */
  readonly json: string | null;
  /** Whether all of them fit into `json`. */
  readonly isAll: boolean;
};

/** The members of a value of the field `messages` beside those of which the events of its items are made. */
export function readOtherMembers(value: JsonNode): OtherMembers {
  let chars = 0;
  let isAll = true;
  const kept: string[] = [];
  for (const { name, value: other } of members(value)) {
    if (OF_ITEMS.has(stringOf(name) ?? '')) continue;
    chars += other.end - name.start;
    if (other.tooDeep || chars > MAX_CHARS) isAll = false;
    else kept.push(name.tape.text.slice(name.start, other.end));
  }
  return { json: kept.length === 0 ? null : `{${kept.join(',')}}`, isAll };
}

/** The last member of an event's data. */
export function otherMembersOf(json: string | null): string {
  return json === null ? '' : `,"value":${json}`;
}

/** The names of those members, for erasures: what they say of a customer goes with the customer's items. */
export function otherNames(value: JsonNode | null): string[] {
  return members(value).flatMap(({ name }) => {
    const text = stringOf(name) ?? '';
    return OF_ITEMS.has(text) ? [] : [text];
  });
}

/** Erased items count. */
export function hasItems(value: JsonNode): boolean {
  return LISTS.some((list) => items(member(value, list)).length > 0);
}

export function withoutItems(value: JsonNode): JsonNode {
  return parseJson(sourceWithEdits(value, memberRemovals(value, LISTS)), { deepNodes: 'mark' });
}
