import { items, type JsonNode, member, stringOf } from '../../platform/json/json-text.ts';
import { boundedIdOf, shortTextOf } from '../../platform/json/storable-text.ts';
import { readPhoneNumber } from '../../platform/phone-number.ts';
import { type PersonIds, timestampOf, waIdOf } from './item-context.ts';

type MemberState = 'member' | 'requested' | 'left';

type GroupPerson = PersonIds & {
  otherPhone: string | null;
  parentUserId: string | null;
  username: string | null;
  state: MemberState;
};

/** Upstream's report of a group; null and an empty list: it says nothing of that. */
export type GroupReport = {
  groupId: string;
  at: Date | null;
  subject: string | null;
  description: string | null;
  state: 'active' | 'suspended' | 'deleted' | null;
  people: GroupPerson[];
};

export const GROUP_FIELDS: readonly string[] = [
  'group_lifecycle_update',
  'group_participants_update',
  'group_settings_update',
  'group_status_update',
];

/** Upstream allows 128 and 2,048 characters; a report of anything longer is cut. */
const MAX_SUBJECT_CHARS = 512;
const MAX_DESCRIPTION_CHARS = 4_096;
/** Upstream lets eight people into a group; more than this in one report is left out. */
const MAX_PEOPLE = 1_024;
const MAX_REPORTS = 1_024;
const MAX_NAME_CHARS = 256;

/**
 * The reports in a value of one of the fields of groups. Their form is after groups/webhooks below
 * developers.facebook.com/documentation/business-messaging/whatsapp; the user ids of members are after the examples of
 * providers. What failed upstream changes nothing.
 */
export function readGroupReports(value: JsonNode): GroupReport[] {
  return items(member(value, 'groups'))
    .slice(0, MAX_REPORTS)
    .flatMap((group) => reportOf(group) ?? []);
}

function reportOf(group: JsonNode): GroupReport | null {
  const groupId = boundedIdOf(member(group, 'group_id'));
  const type = stringOf(member(group, 'type'));
  if (groupId === null || type === null || group.tooDeep) return null;
  const nothing = { subject: null, description: null, state: null, people: [] };
  const said = saidBy(type, group);
  return said === null ? null : { groupId, at: timestampOf(member(group, 'timestamp')), ...nothing, ...said };
}

type Said = Partial<Omit<GroupReport, 'groupId' | 'at'>>;

function saidBy(type: string, group: JsonNode): Said | null {
  const hasFailed = items(member(group, 'errors')).length > 0;
  switch (type) {
    case 'group_create':
      return hasFailed ? null : { state: 'active', ...settingsIn(group) };
    case 'group_delete':
      return hasFailed ? null : { state: 'deleted' };
    case 'group_suspend':
      return { state: 'suspended' };
    case 'group_suspend_cleared':
      return { state: 'active' };
    case 'group_settings_update':
      return {
        subject: updatedText(group, 'group_subject', MAX_SUBJECT_CHARS),
        description: updatedText(group, 'group_description', MAX_DESCRIPTION_CHARS),
      };
    case 'group_participants_add':
      return { people: peopleIn(group, 'added_participants', 'member') };
    // It may have failed for some: they are in another list.
    case 'group_participants_remove':
      return { people: peopleIn(group, 'removed_participants', 'left') };
    case 'group_join_request_created':
      return { people: personOf(group, 'requested') };
    case 'group_join_request_revoked':
      return { people: personOf(group, 'left') };
    default:
      return null;
  }
}

function settingsIn(group: JsonNode): Pick<GroupReport, 'subject' | 'description'> {
  return {
    subject: shortTextOf(member(group, 'subject'), MAX_SUBJECT_CHARS),
    description: shortTextOf(member(group, 'description'), MAX_DESCRIPTION_CHARS),
  };
}

/** A setting that upstream changed: one that it refused has `update_successful: false`. */
function updatedText(group: JsonNode, name: string, maxChars: number): string | null {
  const setting = member(group, name);
  const isRefused = member(setting, 'update_successful')?.kind === 'false';
  return isRefused ? null : shortTextOf(member(setting, 'text'), maxChars);
}

function peopleIn(group: JsonNode, list: string, state: MemberState): GroupPerson[] {
  return items(member(group, list))
    .slice(0, MAX_PEOPLE)
    .flatMap((person) => personOf(person, state));
}

/** `input` is what the business named the person by, when it removed them. */
function personOf(person: JsonNode, state: MemberState): GroupPerson[] {
  const input = boundedIdOf(member(person, 'input'));
  const phone = input === null ? null : readPhoneNumber(input);
  const named = boundedIdOf(member(person, 'wa_id'));
  const waId = named === null ? phone : waIdOf(named);
  const userId = boundedIdOf(member(person, 'user_id')) ?? (phone === null ? input : null);
  if (waId === null && userId === null) return [];
  const parentUserId = boundedIdOf(member(person, 'parent_user_id'));
  const username = shortTextOf(member(person, 'username'), MAX_NAME_CHARS);
  const otherPhone = phone !== null && named !== null && phone !== waId ? phone : null;
  return [{ waId, userId, otherPhone, parentUserId, username, state }];
}
