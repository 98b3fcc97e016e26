import { Type } from 'typebox';
import { listConversationMessages } from '../../database/conversation-messages.ts';
import { notFound } from '../errors/api-error.ts';
import { accountOf } from '../plugins/api-key-auth.ts';
import { SCOPES } from '../plugins/key-scopes.ts';
import type { ExternalApp, ExternalContext } from './external-app.ts';
import { MessageList, messageListJson } from './message-list.ts';
import { objectId } from './object-id.ts';
import { PAGE_PARAMETERS, pageOf, positionOf, rowsToRead } from './page.ts';

const MessageQuery = Type.Object(
  { ...PAGE_PARAMETERS, order: Type.Optional(Type.Enum(['asc', 'desc'], { default: 'desc' })) },
  { additionalProperties: false },
);

/**
 * GET /api/external/conversations/:id/messages: the messages of a conversation, the newest first unless asked
 * otherwise, because whoever waits for media polls for what came last.
 */
export function conversationMessages(app: ExternalApp, context: ExternalContext): void {
  const { database, cursors, publicUrl } = context;
  const schema = {
    operationId: 'listConversationMessages',
    params: Type.Object({ id: Type.String() }),
    querystring: MessageQuery,
    response: { 200: MessageList },
  };
  app.get(
    '/api/external/conversations/:id/messages',
    { schema, config: SCOPES.read },
    async (request, reply) => {
      const { wabaId } = accountOf(request);
      const conversationId = objectId(request.params.id);
      const { limit, cursor, order = 'desc' } = request.query;
      const scope = [wabaId, 'messages', conversationId, order];
      const [afterId = null] = positionOf(cursors, scope, cursor) ?? [];
      const page = { order, afterId, limit: rowsToRead(limit) };
      const found = await listConversationMessages(database, wabaId, conversationId, page);
      if (found === null) throw notFound();
      const list = pageOf(found, limit, (row) => cursors.encode(scope, [row.id]));
      // Sent as text: the upstream objects in it must not pass through JSON.parse, which rounds large numbers.
      reply.type('application/json; charset=utf-8').serializer(String);
      return reply.send(messageListJson(list, publicUrl) as never);
    },
  );
}
