import { type Static, Type } from 'typebox';
import { readCustomerReference } from '../../features/customers/customer-reference.ts';
import { type GroupMember, listGroupMembers } from '../../features/customers/groups.ts';
import {
  type ConversationDetail,
  type ConversationFilter,
  type ConversationRow,
  findConversation,
  listConversations,
  MAX_COUNTED_MESSAGES,
  type ServiceWindow,
  serviceWindows,
} from '../../features/messages/conversations/conversations.ts';
import { listNewestMessages } from '../../features/messages/conversations/message-list.ts';
import { findThread } from '../../features/messages/conversations/thread.ts';
import { OptOutMark } from '../customers/opt-out-mark.ts';
import { notFound } from '../errors/api-error.ts';
import { orderParameter, PAGE_PARAMETERS, walkOf } from '../external/page.ts';
import {
  closed,
  count,
  dateTime,
  listOf,
  named,
  namedClosed,
  nullable,
  objectPath,
  optionalParameter,
  parameter,
  sendJsonText,
  sendListText,
  Time,
  text,
  timeOf,
  upstreamText,
} from '../external/schema-kit.ts';
import { exampleOf } from '../openapi/schemas.ts';
import { type ApiCall, restOperation } from '../operations/operation.ts';
import { Message, messageTexts } from './message-json.ts';

const Group = named('Group', {
  id: text('Y2FwaV9ncm91cDoxMjAyNTU1MDEwMDoxMjAzNjM0MDQ2OTQyMzM4MjAZD'),
  subject: nullable(Type.String(), 'Trip to Lisbon'),
  state: nullable(Type.Enum(['active', 'suspended', 'deleted']), 'active'),
});

const Conversation = named('Conversation', {
  id: text('42'),
  phoneNumberId: text('800000000000111'),
  customer: Type.Object({
    waId: nullable(Type.String(), '12025550143'),
    userId: nullable(Type.String()),
    name: nullable(Type.String(), 'Asha Tester'),
    username: nullable(Type.String()),
  }),
  group: Type.Optional(Group),
  optOut: nullable(OptOutMark),
  lastMessageAt: dateTime('2026-11-21T09:30:00.001Z'),
  createdAt: dateTime('2026-11-02T16:20:11.500Z'),
  customerServiceWindow: Type.Object({
    isOpen: Type.Boolean({ examples: [true] }),
    expiresAt: nullable(dateTime(), '2026-11-22T09:29:58.000Z'),
    lastInboundAt: nullable(dateTime(), '2026-11-21T09:29:58.000Z'),
    lastCallAt: nullable(dateTime()),
  }),
  /** What was said last: no scheduled message before it is sent. Null where it is larger than 64 KiB. */
  lastMessage: nullable(Message, exampleOf(Message)),
});

function conversationMembers(row: ConversationRow) {
  const { id, phoneNumberId, waId, userId, name, username, lastMessageAt, createdAt } = row;
  return {
    id,
    phoneNumberId,
    customer: { waId, userId, name, username },
    ...groupMember(row),
    optOut: optOutOf(row),
    lastMessageAt,
    createdAt,
  };
}

function optOutOf({ optOutScope: scope, optOutSource: source, optOutSince: since }: ConversationRow) {
  return scope === null || source === null || since === null ? null : { scope, source, since };
}

function groupMember({ groupId, groupSubject, groupState }: ConversationRow) {
  return groupId === null ? {} : { group: { id: groupId, subject: groupSubject, state: groupState } };
}

const Customer = parameter(
  upstreamText(256),
  'The conversation with this customer only: a phone number or a user id.',
  '12025550143',
);

const ConversationSearch = namedClosed('ConversationSearch', {
  ...PAGE_PARAMETERS,
  order: orderParameter(
    '`asc` lists without gaps, and always gives a cursor to continue from later.',
    'desc',
  ),
  phoneNumberId: optionalParameter(
    upstreamText(128),
    'Conversations of this number only.',
    '800000000000111',
  ),
  customer: Type.Optional(Customer),
  optedOut: optionalParameter(
    Type.Boolean(),
    'Only those with customers who want no messages of some kind, or only the others.',
    true,
  ),
  since: optionalParameter(Time, 'Conversations active at this time or later.', '2026-11-21T00:00:00Z'),
});

/** Addresses stand in logs of proxies, so a number should not. */
const ConversationQuery = closed({
  ...ConversationSearch.properties,
  customer: Type.Optional({
    ...Customer,
    deprecated: true,
    description:
      'Deprecated: use `POST /api/external/conversations/search`, so that no phone number stands in an address.',
  }),
});

/**
 * With order=asc the list has no gaps: a conversation that becomes active while it is walked moves ahead of the walk, and its cursor goes
 * on from there later.
 */
export const listAllConversations = restOperation({
  id: 'listConversations',
  method: 'GET',
  path: '/api/external/conversations',
  scope: 'read',
  summary: 'List conversations',
  description:
    'The most recently active first, each with the message that was sent or received last, and whether the customer service window is open. A scheduled message counts once it is sent.',
  tag: 'Conversations',
  query: ConversationQuery,
  answers: {
    200: {
      schema: listOf(Conversation),
      description: 'A page of conversations.',
      example: { hasMore: true, nextCursor: 'AAABlq3kZ0B2' },
    },
  },
  run: (call, input) => pageOfConversations(call, input),
});

export const searchConversations = restOperation({
  id: 'searchConversations',
  method: 'POST',
  path: '/api/external/conversations/search',
  scope: 'read',
  summary: 'Search conversations',
  description:
    'As `GET /api/external/conversations`, with the filters in the body: phone numbers do not belong in addresses, which stand in logs of proxies.',
  tag: 'Conversations',
  requests: { customer: { customer: '+1 202-555-0143' }, all: {} },
  body: ConversationSearch,
  answers: { 200: { schema: listOf(Conversation), description: 'A page of conversations.' } },
  run: (call, input) => pageOfConversations(call, input),
});

async function pageOfConversations(
  { database, cursors, wabaId, mediaUrls, reply }: ApiCall,
  search: Static<typeof ConversationSearch>,
) {
  const filter = filterOf(search);
  const { order, limit, nextCursor, ...walk } = walkOf(cursors, [wabaId, 'conversations'], search, filter);
  const [lastMessageAtText, id] = walk.after;
  const after = lastMessageAtText === undefined || id === undefined ? null : { lastMessageAtText, id };
  const found = await listConversations(database, wabaId, filter, { order, after, limit: limit + 1 });
  const rows = found.slice(0, limit);
  const hasMore = found.length > limit;
  const last = rows.at(-1) ?? after;
  const position = last === null ? null : [last.lastMessageAtText, last.id];
  const ids = rows.map((row) => row.id);
  const [windows, newest] = await Promise.all([
    serviceWindows(database, wabaId, ids),
    listNewestMessages(database, wabaId, ids),
  ]);
  const texts = await messageTexts(database, wabaId, newest, mediaUrls);
  const lastMessages = new Map(newest.map((message, index) => [message.conversationId, texts[index]]));
  const data = rows.map((row) => {
    const customerServiceWindow = windowMember(windows.get(row.id) ?? NO_WINDOW);
    const members = { ...conversationMembers(row), customerServiceWindow };
    return withLastMessage(members, lastMessages.get(row.id));
  });
  return sendListText(reply, data, { hasMore, nextCursor: nextCursor(position, hasMore) });
}

/** A message is JSON text already. */
function withLastMessage(members: object, lastMessage = 'null'): string {
  return `${JSON.stringify(members).slice(0, -1)},"lastMessage":${lastMessage}}`;
}

function filterOf(query: Static<typeof ConversationSearch>): ConversationFilter {
  return {
    phoneNumberId: query.phoneNumberId ?? null,
    customer: query.customer === undefined ? null : readCustomerReference(query.customer),
    since: timeOf('since', query.since),
    ...(query.optedOut !== undefined && { optedOut: query.optedOut }),
  };
}

const WINDOW_MS = 24 * 3_600_000;

/** Of a conversation that was merged or erased since its list was read. */
const NO_WINDOW: ServiceWindow = { isWindowOpen: false, lastInboundAt: null, lastCallAt: null };

function windowMember({ isWindowOpen, lastInboundAt, lastCallAt }: ServiceWindow) {
  const openedMs = Math.max(lastInboundAt?.getTime() ?? 0, lastCallAt?.getTime() ?? 0);
  const expiresAt = openedMs === 0 ? null : new Date(openedMs + WINDOW_MS);
  return { isOpen: isWindowOpen, expiresAt, lastInboundAt, lastCallAt };
}

const DetailedGroup = named('GroupDetails', {
  ...Group.properties,
  description: nullable(Type.String()),
  /** Who is in it or asks to be, as far as upstream reported it; the first who came first. */
  members: Type.Array(
    named('GroupMember', {
      waId: nullable(Type.String(), '12025550143'),
      userId: nullable(Type.String()),
      name: nullable(Type.String(), 'Asha Tester'),
      username: nullable(Type.String()),
      state: Type.Enum(['member', 'requested']),
      since: dateTime('2026-11-21T09:29:58.000Z'),
    }),
  ),
});

export const ThreadShape = named('Thread', {
  owner: Type.Enum(['us', 'other', 'unknown']),
  role: nullable(Type.String(), 'customer_service'),
  since: dateTime('2026-11-21T09:29:58.000Z'),
});

const DetailedConversation = named('ConversationDetails', {
  ...Conversation.properties,
  group: Type.Optional(DetailedGroup),
  phoneNumber: Type.Object({
    phoneNumberId: text('800000000000111'),
    displayPhoneNumber: text('+1 202-555-0100'),
    verifiedName: text('Fixture Store'),
  }),
  messageCounts: Type.Object({
    inbound: count(12),
    outbound: count(9),
    /** False: these are the counts among the newest 10,000 messages. */
    isComplete: Type.Boolean({ examples: [true] }),
  }),
  /** Null where no other responder shares the number, and while the conversation is idle. */
  thread: nullable(ThreadShape),
});

export const getConversation = restOperation({
  id: 'getConversation',
  method: 'GET',
  path: '/api/external/conversations/:id',
  scope: 'read',
  summary: 'Get a conversation',
  description:
    'With the message that was sent or received last, how many there are, and whether the customer service window is open.',
  tag: 'Conversations',
  ...objectPath('The id of the conversation.', '42'),
  answers: { 200: { schema: DetailedConversation, description: 'The conversation.' } },
  run: async ({ database, wabaId, mediaUrls, reply }, { id }) => {
    const [conversation, thread] = await Promise.all([
      findConversation(database, wabaId, id),
      findThread(database, wabaId, id),
    ]);
    if (conversation === null) throw notFound();
    const newest = await listNewestMessages(database, wabaId, [conversation.id]);
    const [lastMessage] = await messageTexts(database, wabaId, newest, mediaUrls);
    const inGroup = conversation.groupId === null ? [] : await listGroupMembers(database, conversation.id);
    const members = { ...membersOf(conversation), ...detailedGroup(conversation, inGroup), thread };
    return sendJsonText(reply, withLastMessage(members, lastMessage));
  },
});

function detailedGroup(row: ConversationDetail, members: readonly GroupMember[]) {
  const { group } = groupMember(row);
  if (group === undefined) return {};
  const inIt = members.map(({ at, ...member }) => ({ ...member, since: at }));
  return { group: { ...group, description: row.groupDescription, members: inIt } };
}

function membersOf(row: ConversationDetail) {
  const { phoneNumberId, displayPhoneNumber, verifiedName, inboundCount, outboundCount } = row;
  return {
    ...conversationMembers(row),
    phoneNumber: { phoneNumberId, displayPhoneNumber, verifiedName },
    messageCounts: {
      inbound: inboundCount,
      outbound: outboundCount,
      isComplete: inboundCount + outboundCount < MAX_COUNTED_MESSAGES,
    },
    customerServiceWindow: windowMember(row),
  };
}
