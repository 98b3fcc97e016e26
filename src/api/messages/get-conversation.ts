import { Type } from 'typebox';
import {
  type ConversationDetail,
  findConversation,
  MAX_COUNTED_MESSAGES,
} from '../../messages/conversations/conversation-detail.ts';
import { listConversationMessages } from '../../messages/conversations/conversation-messages.ts';
import { notFound } from '../errors/api-error.ts';
import type { ExternalApp, ExternalContext } from '../external/external-app.ts';
import { sendJsonText } from '../external/json-text.ts';
import { objectId } from '../external/object-id.ts';
import { count, dateTime, idParams, NoQuery, nullable, text } from '../external/schema-kit.ts';
import { accountOf, SCOPES } from '../keys/api-key-auth.ts';
import { documented } from '../openapi/documented.ts';
import { exampleOf } from '../openapi/schema-examples.ts';
import { Conversation, conversationMembers } from './conversation-json.ts';
import { messageTexts } from './message-list.ts';
import { Message } from './message-schemas.ts';

const WINDOW_MS = 24 * 3_600_000;

const DetailedConversation = Type.Object(
  {
    ...Conversation.properties,
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
    customerServiceWindow: Type.Object({
      isOpen: Type.Boolean({ examples: [true] }),
      expiresAt: nullable(dateTime(), '2026-11-22T09:29:58.000Z'),
      lastInboundAt: nullable(dateTime(), '2026-11-21T09:29:58.000Z'),
    }),
    lastMessage: nullable(Message, exampleOf(Message)),
  },
  { title: 'ConversationDetails' },
);

/** GET /api/external/conversations/:id: one conversation with its newest message. */
export function getConversation(app: ExternalApp, { database, publicUrl }: ExternalContext): void {
  const schema = {
    ...documented({
      operationId: 'getConversation',
      summary: 'Get a conversation',
      description:
        'With its newest message, how many there are, and whether the customer service window is open.',
      tag: 'Conversations',
      answers: { 200: { description: 'The conversation.' } },
    }),
    params: idParams('The id of the conversation.', '42'),
    querystring: NoQuery,
    response: { 200: DetailedConversation },
  };
  app.get('/api/external/conversations/:id', { schema, config: SCOPES.read }, async (request, reply) => {
    const { wabaId } = accountOf(request);
    const id = objectId(request.params.id);
    const [conversation, newest] = await Promise.all([
      findConversation(database, wabaId, id),
      listConversationMessages(database, wabaId, id, { order: 'desc', afterId: null, limit: 1 }),
    ]);
    if (conversation === null || newest === null) throw notFound();
    const [lastMessage = 'null'] = await messageTexts(database, wabaId, newest.messages, publicUrl);
    const members = JSON.stringify(membersOf(conversation));
    return sendJsonText(reply, `${members.slice(0, -1)},"lastMessage":${lastMessage}}`);
  });
}

function membersOf(row: ConversationDetail) {
  const { phoneNumberId, displayPhoneNumber, verifiedName, inboundCount, outboundCount, lastInboundAt } = row;
  const expiresAt =
    lastInboundAt === null || row.groupId !== null ? null : new Date(lastInboundAt.getTime() + WINDOW_MS);
  return {
    ...conversationMembers(row),
    phoneNumber: { phoneNumberId, displayPhoneNumber, verifiedName },
    messageCounts: {
      inbound: inboundCount,
      outbound: outboundCount,
      isComplete: inboundCount + outboundCount < MAX_COUNTED_MESSAGES,
    },
    customerServiceWindow: {
      isOpen: row.isWindowOpen,
      expiresAt: expiresAt?.toISOString() ?? null,
      lastInboundAt: lastInboundAt?.toISOString() ?? null,
    },
  };
}
