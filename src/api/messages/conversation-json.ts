import { Type } from 'typebox';
import type { ConversationRow } from '../../messages/conversations/conversation-list.ts';
import { dateTime, nullable, text } from '../external/schema-kit.ts';

/** A conversation as lists show it. */
export const Conversation = Type.Object(
  {
    id: text('42'),
    phoneNumberId: text('800000000000111'),
    customer: Type.Object({
      waId: nullable(Type.String(), '12025550143'),
      userId: nullable(Type.String()),
      name: nullable(Type.String(), 'Asha Tester'),
      username: nullable(Type.String()),
    }),
    group: Type.Optional(Type.Object({ id: Type.String() })),
    lastMessageAt: dateTime('2026-11-21T09:30:00.001Z'),
    createdAt: dateTime('2026-11-02T16:20:11.500Z'),
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
