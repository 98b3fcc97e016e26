import {
  type ConversationPair,
  findContacts,
  findConversations,
  openConversations,
} from '../../features/customers/customers.ts';
import { type GroupNews, type NewMember, noteGroups, noteMembers } from '../../features/customers/groups.ts';
import { actualPhones } from '../../features/customers/phone-aliases.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import { keyOf } from '../senders/batch-conversations.ts';
import { BatchCustomers } from '../senders/batch-customers.ts';
import { spellingsOf, writeContacts } from '../senders/save-customers.ts';
import { type GroupReport, readGroupReports } from '../split/groups.ts';
import { type FieldValue, notAfter } from './field-values.ts';

type OwnedReport = Omit<GroupReport, 'at'> & { at: Date; wabaId: string; phoneNumberId: string };

/**
 * Keeps what upstream reports of groups with their conversations: subject, state and members, each by the time of its
 * report, as reports overtake each other. A person who is named as a member is a customer from then on.
 */
export async function applyGroups(trx: Transaction, values: readonly FieldValue[], now: Date): Promise<void> {
  const reports = values.flatMap(({ wabaId, phoneNumberId, value }) =>
    readGroupReports(value).map((report): OwnedReport => {
      return { ...report, at: notAfter(report.at, now), wabaId, phoneNumberId };
    }),
  );
  if (reports.length === 0) return;
  const conversations = await conversationsOf(trx, reports);
  const placed = reports.flatMap((report) => {
    const conversationId = conversations.get(keyOf(pairOf(report)));
    return conversationId === undefined ? [] : [{ ...report, conversationId }];
  });
  await noteGroups(trx, newsOf(placed));
  await noteMembers(trx, await membersOf(trx, placed));
}

type PlacedReport = OwnedReport & { conversationId: string };

function pairOf({ wabaId, phoneNumberId, groupId }: OwnedReport): ConversationPair {
  return { wabaId, phoneNumberId, partnerId: groupId };
}

/** The end of a group, or of a membership, opens no conversation: what was erased does not come back by it. */
function isBeginning({ state, subject, description, people }: OwnedReport): boolean {
  const isAbout = state !== null || subject !== null || description !== null;
  return state !== 'deleted' && (isAbout || people.some((person) => person.state !== 'left'));
}

async function conversationsOf(
  trx: Transaction,
  reports: readonly OwnedReport[],
): Promise<Map<string, string>> {
  const pairs = [...new Map(reports.map((report) => [keyOf(pairOf(report)), pairOf(report)])).values()];
  const there = await findConversations(trx, 'group', pairs);
  const known = new Set(there.map(keyOf));
  const begun = new Set(reports.filter(isBeginning).map((report) => keyOf(pairOf(report))));
  const missing = pairs.filter((pair) => !known.has(keyOf(pair)) && begun.has(keyOf(pair)));
  const opened = await openConversations(trx, 'group', missing);
  return new Map([...there, ...opened].map((row) => [keyOf(row), row.id]));
}

/** One entry per conversation, with the newest that the reports say of each thing. */
function newsOf(reports: readonly PlacedReport[]): GroupNews[] {
  const news = new Map<string, GroupNews>();
  for (const { conversationId, wabaId, at, subject, description, state } of reports) {
    if (subject === null && description === null && state === null) continue;
    const one = news.get(conversationId) ?? { conversationId, wabaId, ...NOTHING };
    news.set(conversationId, one);
    if (subject !== null && at >= (one.subjectAt ?? LONG_AGO)) Object.assign(one, { subject, subjectAt: at });
    if (description !== null && at >= (one.descriptionAt ?? LONG_AGO))
      Object.assign(one, { description, descriptionAt: at });
    if (state !== null && one.state !== 'deleted' && (state === 'deleted' || at >= (one.stateAt ?? LONG_AGO)))
      Object.assign(one, { state, stateAt: at });
  }
  return [...news.values()];
}

const LONG_AGO = new Date(0);

const NOTHING = {
  subject: null,
  subjectAt: null,
  description: null,
  descriptionAt: null,
  state: null,
  stateAt: null,
};

/** One entry per person and group, the newest. Who leaves and is not known stays unknown. */
async function membersOf(trx: Transaction, reports: readonly PlacedReport[]): Promise<NewMember[]> {
  const named = reports.flatMap(({ people, wabaId, phoneNumberId, conversationId, at }) =>
    people.map((person) => ({ ...person, wabaId, phoneNumberId, conversationId, at })),
  );
  if (named.length === 0) return [];
  const people = await actualPhones(trx, named);
  const customers = new BatchCustomers(await findContacts(trx, people.flatMap(spellingsOf)));
  const found = people.map((person) =>
    person.state === 'left' ? customers.find(person) : customers.see({ ...person, name: null }),
  );
  const { done } = await writeContacts(trx, customers, []);
  await done;
  const members = new Map<string, NewMember>();
  for (const [index, { wabaId, conversationId, state, at }] of people.entries()) {
    const customer = found[index];
    const contactId = customer === undefined ? null : customers.current(customer).id;
    if (contactId === null) continue;
    const key = `${conversationId} ${contactId}`;
    const before = members.get(key);
    if (before === undefined || at >= before.at)
      members.set(key, { wabaId, conversationId, contactId, state, at });
  }
  return [...members.values()];
}
