import { Type } from 'typebox';
import { type ConversationRow, listConversations } from '../../database/conversation-list.ts';
import { accountOf } from '../plugins/api-key-auth.ts';
import { SCOPES } from '../plugins/key-scopes.ts';
import type { ExternalApp, ExternalContext } from './external-app.ts';
import { nullable } from './nullable.ts';
import { PAGE_PARAMETERS, pageOf, positionOf, rowsToRead } from './page.ts';

const ConversationQuery = Type.Object(
  { ...PAGE_PARAMETERS, phoneNumberId: Type.Optional(Type.String({ pattern: '^[^\\u0000]{1,128}$' })) },
  { additionalProperties: false },
);

const Conversation = Type.Object({
  id: Type.String(),
  phoneNumberId: Type.String(),
  customer: Type.Object({
    waId: nullable(Type.String()),
    userId: nullable(Type.String()),
    name: nullable(Type.String()),
    username: nullable(Type.String()),
  }),
  lastMessageAt: Type.String({ format: 'date-time' }),
  createdAt: Type.String({ format: 'date-time' }),
});

const ConversationList = Type.Object({
  data: Type.Array(Conversation),
  hasMore: Type.Boolean(),
  nextCursor: nullable(Type.String()),
});

/** GET /api/external/conversations: the conversations of a WABA, the most recently active first. */
export function conversations(app: ExternalApp, { database, cursors }: ExternalContext): void {
  const schema = {
    operationId: 'listConversations',
    querystring: ConversationQuery,
    response: { 200: ConversationList },
  };
  app.get('/api/external/conversations', { schema, config: SCOPES.read }, async (request) => {
    const { wabaId } = accountOf(request);
    const { limit, cursor, phoneNumberId = null } = request.query;
    const scope = [wabaId, 'conversations', phoneNumberId];
    const [lastMessageAtText, id] = positionOf(cursors, scope, cursor) ?? [];
    const after = lastMessageAtText === undefined || id === undefined ? null : { lastMessageAtText, id };
    const found = await listConversations(database, wabaId, {
      phoneNumberId,
      after,
      limit: rowsToRead(limit),
    });
    const { rows, ...page } = pageOf(found, limit, (row) =>
      cursors.encode(scope, [row.lastMessageAtText, row.id]),
    );
    return { data: rows.map(conversationOf), ...page };
  });
}

function conversationOf(row: ConversationRow) {
  const { id, phoneNumberId, waId, userId, name, username, lastMessageAt, createdAt } = row;
  return {
    id,
    phoneNumberId,
    customer: { waId, userId, name, username },
    lastMessageAt: lastMessageAt.toISOString(),
    createdAt: createdAt.toISOString(),
  };
}
