import { type Static, Type } from 'typebox';
import { listConversationMessages, type MessageFilter } from '../../messages/conversations/message-list.ts';
import { notFound } from '../errors/api-error.ts';
import { PAGE_PARAMETERS, pageSize, positionOf } from '../external/page.ts';
import { idParams, objectId, parameter, sendJsonText, Time, timeOf } from '../external/schema-kit.ts';
import { restOperation } from '../operations/operation.ts';
import { MessageList, messageTexts } from './message-json.ts';

const MessageQuery = Type.Object(
  {
    ...PAGE_PARAMETERS,
    order: Type.Optional(
      parameter(
        Type.Enum(['asc', 'desc'], { default: 'desc' }),
        '`asc`: the oldest first, and the last page gives a cursor to continue from later.',
        'desc',
      ),
    ),
    direction: Type.Optional(
      parameter(Type.Enum(['inbound', 'outbound']), 'Messages of this direction only.', 'inbound'),
    ),
    type: Type.Optional(
      parameter(Type.String({ pattern: '^[^\\u0000]{1,128}$' }), 'Messages of this type only.', 'image'),
    ),
    since: Type.Optional(parameter(Time, 'Messages stored at this time or later.', '2026-11-21T00:00:00Z')),
    until: Type.Optional(parameter(Time, 'Messages stored before this time.', '2026-11-22T00:00:00Z')),
  },
  { additionalProperties: false },
);

/** Lists the messages of a conversation, the newest first unless asked otherwise: a client that waits for media polls for the last ones. */
export const listMessages = restOperation({
  id: 'listConversationMessages',
  method: 'GET',
  path: '/api/external/conversations/:id/messages',
  scope: 'read',
  summary: 'List the messages of a conversation',
  description:
    'In both directions, the newest first. For the media of a message, ask until `mediaPending` is false: then `mediaUrl` is a link, or `mediaError` is present.',
  tag: 'Conversations',
  params: idParams('The id of the conversation.', '42'),
  checkId: objectId,
  query: MessageQuery,
  answers: { 200: { schema: MessageList, description: 'A page of messages.' } },
  run: async ({ database, wabaId, cursors, mediaUrls, reply }, input) => {
    const conversationId = input.id;
    const { limit, cursor, order = 'desc' } = input;
    const filter = filterOf(input);
    const scope = [wabaId, 'messages', conversationId, order, JSON.stringify(filter)];
    const [afterId = null] = positionOf(cursors, scope, cursor) ?? [];
    const walk = { order, afterId, limit: pageSize(limit) };
    const page = await listConversationMessages(database, wabaId, conversationId, walk, filter);
    if (page === null) throw notFound();
    const { messages, hasMore, position } = page;
    const data = await messageTexts(database, wabaId, messages, mediaUrls);
    const isGoneOnFrom = position !== null && (hasMore || order === 'asc');
    const nextCursor = isGoneOnFrom ? JSON.stringify(cursors.encode(scope, [position])) : null;
    return sendJsonText(
      reply,
      `{"data":[${data.join(',')}],"hasMore":${hasMore},"nextCursor":${nextCursor}}`,
    );
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
