import { type Static, Type } from 'typebox';
import {
  listConversationMessages,
  type MessageFilter,
} from '../../features/messages/conversations/message-list.ts';
import { notFound } from '../errors/api-error.ts';
import { orderParameter, PAGE_PARAMETERS, walkOf } from '../external/page.ts';
import {
  closed,
  objectPath,
  optionalParameter,
  sendListText,
  Time,
  timeOf,
  upstreamText,
} from '../external/schema-kit.ts';
import { restOperation } from '../operations/operation.ts';
import { MessageList, messageTexts } from './message-json.ts';

const MessageQuery = closed({
  ...PAGE_PARAMETERS,
  order: orderParameter(
    '`asc`: the oldest first, and the last page gives a cursor to continue from later.',
    'desc',
  ),
  direction: optionalParameter(
    Type.Enum(['inbound', 'outbound']),
    'Messages of this direction only.',
    'inbound',
  ),
  type: optionalParameter(upstreamText(128), 'Messages of this type only.', 'image'),
  since: optionalParameter(Time, 'Messages stored at this time or later.', '2026-11-21T00:00:00Z'),
  until: optionalParameter(Time, 'Messages stored before this time.', '2026-11-22T00:00:00Z'),
});

/** The newest come first unless asked otherwise: a client that waits for media polls for the last ones. */
export const listMessages = restOperation({
  id: 'listConversationMessages',
  method: 'GET',
  path: '/api/external/conversations/:id/messages',
  scope: 'read',
  summary: 'List the messages of a conversation',
  description:
    'In both directions, the newest first. For the media of a message, ask until `mediaPending` is false: then `mediaUrl` is a link, or `mediaError` is present.',
  tag: 'Conversations',
  ...objectPath('The id of the conversation.', '42'),
  query: MessageQuery,
  answers: { 200: { schema: MessageList, description: 'A page of messages.' } },
  run: async ({ database, wabaId, cursors, mediaUrls, reply }, input) => {
    const { id } = input;
    const filter = filterOf(input);
    const { order, after, limit, nextCursor } = walkOf(cursors, [wabaId, 'messages', id], input, filter);
    const [afterId = null] = after;
    const walk = { order, afterId, limit };
    const page = await listConversationMessages(database, wabaId, id, walk, filter);
    if (page === null) throw notFound();
    const { messages, hasMore, position } = page;
    const data = await messageTexts(database, wabaId, messages, mediaUrls);
    const next = nextCursor(position === null ? null : [position], hasMore);
    return sendListText(reply, data, { hasMore, nextCursor: next });
  },
});

function filterOf(query: Static<typeof MessageQuery>): MessageFilter {
  return {
    direction: query.direction ?? null,
    type: query.type ?? null,
    since: timeOf('since', query.since),
    until: timeOf('until', query.until),
  };
}
