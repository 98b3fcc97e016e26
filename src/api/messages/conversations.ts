import { type Static, Type } from 'typebox';
import {
  type ConversationFilter,
  listConversations,
} from '../../messages/conversations/conversation-list.ts';
import { readCustomerReference } from '../../messages/conversations/customer-reference.ts';
import { Time, timeOf } from '../external/api-time.ts';
import type { ExternalApp, ExternalContext } from '../external/external-app.ts';
import { PAGE_PARAMETERS, pageOf, positionOf, rowsToRead } from '../external/page.ts';
import { listOf, parameter } from '../external/schema-kit.ts';
import { accountOf, SCOPES } from '../keys/api-key-auth.ts';
import { documented } from '../openapi/documented.ts';
import { Conversation, conversationMembers } from './conversation-json.ts';

const ConversationQuery = Type.Object(
  {
    ...PAGE_PARAMETERS,
    order: Type.Optional(
      parameter(
        Type.Enum(['asc', 'desc'], { default: 'desc' }),
        '`asc` lists without gaps, and always gives a cursor to go on from later.',
        'desc',
      ),
    ),
    phoneNumberId: Type.Optional(
      parameter(
        Type.String({ pattern: '^[^\\u0000]{1,128}$' }),
        'Conversations of this number only.',
        '800000000000111',
      ),
    ),
    customer: Type.Optional(
      parameter(
        Type.String({ pattern: '^[^\\u0000]{1,256}$' }),
        'The conversation with this customer only: a phone number or a user id.',
        '12025550143',
      ),
    ),
    since: Type.Optional(
      parameter(Time, 'Conversations active at this time or later.', '2026-11-21T00:00:00Z'),
    ),
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
    ...documented({
      operationId: 'listConversations',
      summary: 'List conversations',
      description: 'The most recently active first.',
      tag: 'Conversations',
      answers: {
        200: {
          description: 'A page of conversations.',
          example: { hasMore: true, nextCursor: 'AAABlq3kZ0B2' },
        },
      },
    }),
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
