import { Type } from 'typebox';
import type { ConversationRow } from '../../database/conversation-list.ts';
import { nullable } from './nullable.ts';

/** A conversation as lists show it. */
export const Conversation = Type.Object(
  {
    id: Type.String(),
    phoneNumberId: Type.String(),
    customer: Type.Object({
      waId: nullable(Type.String()),
      userId: nullable(Type.String()),
      name: nullable(Type.String()),
      username: nullable(Type.String()),
    }),
    group: Type.Optional(Type.Object({ id: Type.String() })),
    lastMessageAt: Type.String({ format: 'date-time' }),
    createdAt: Type.String({ format: 'date-time' }),
  },
  { title: 'Conversation' },
);

/** The members of a conversation. */
export function conversationMembers(row: ConversationRow) {
  const { id, phoneNumberId, waId, userId, name, username, groupId, lastMessageAt, createdAt } = row;
  return {
    id,
    phoneNumberId,
    customer: { waId, userId, name, username },
    ...(groupId !== null && { group: { id: groupId } }),
    lastMessageAt: lastMessageAt.toISOString(),
    createdAt: createdAt.toISOString(),
  };
}
