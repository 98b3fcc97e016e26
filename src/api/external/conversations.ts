import { type Static, Type } from 'typebox';
import { type ConversationFilter, listConversations } from '../../database/conversation-list.ts';
import { readCustomerReference } from '../../domain/customer-reference.ts';
import { accountOf } from '../plugins/api-key-auth.ts';
import { SCOPES } from '../plugins/key-scopes.ts';
import { Time, timeOf } from './api-time.ts';
import { Conversation, conversationMembers } from './conversation-json.ts';
import type { ExternalApp, ExternalContext } from './external-app.ts';
import { listOf } from './list-of.ts';
import { conversationDocs } from './message-docs.ts';
import { PAGE_PARAMETERS, pageOf, positionOf, rowsToRead } from './page.ts';

const ConversationQuery = Type.Object(
  {
    ...PAGE_PARAMETERS,
    order: Type.Optional(Type.Enum(['asc', 'desc'], { default: 'desc' })),
    phoneNumberId: Type.Optional(Type.String({ pattern: '^[^\\u0000]{1,128}$' })),
    customer: Type.Optional(Type.String({ pattern: '^[^\\u0000]{1,256}$' })),
    since: Type.Optional(Time),
  },
  { additionalProperties: false },
);

/**
 * GET /api/external/conversations: the conversations of a WABA, the most recently active first. With order=asc the
 * list has no gaps: what becomes active while it is walked moves ahead of the walk, and its cursor goes on from there
 * later.
 */
export function conversations(app: ExternalApp, { database, cursors }: ExternalContext): void {
  const schema = {
    ...conversationDocs.list,
    querystring: ConversationQuery,
    response: { 200: listOf(Conversation) },
  };
  app.get('/api/external/conversations', { schema, config: SCOPES.read }, async (request) => {
    const { wabaId } = accountOf(request);
    const { limit, cursor, order = 'desc' } = request.query;
    const filter = filterOf(request.query);
    const scope = [wabaId, 'conversations', order, JSON.stringify(filter)];
    const [lastMessageAtText, id] = positionOf(cursors, scope, cursor) ?? [];
    const after = lastMessageAtText === undefined || id === undefined ? null : { lastMessageAtText, id };
    const walk = { order, after, limit: rowsToRead(limit) };
    const found = await listConversations(database, wabaId, filter, walk);
    const { rows, hasMore } = pageOf(found, limit, () => '');
    const last = rows.at(-1) ?? (after === null ? undefined : after);
    const nextCursor =
      last !== undefined && (hasMore || order === 'asc')
        ? cursors.encode(scope, [last.lastMessageAtText, last.id])
        : null;
    return { data: rows.map(conversationMembers), hasMore, nextCursor };
  });
}

function filterOf(query: Static<typeof ConversationQuery>): ConversationFilter {
  return {
    phoneNumberId: query.phoneNumberId ?? null,
    customer: query.customer === undefined ? null : readCustomerReference(query.customer),
    since: timeOf('since', query.since),
  };
}
