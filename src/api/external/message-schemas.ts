import { Type } from 'typebox';
import { MediaError } from './media-members.ts';
import { nullable } from './nullable.ts';

const DATE_TIME = Type.String({ format: 'date-time' });

/** An upstream object, passed on exactly as upstream wrote it. */
const UpstreamObject = Type.Object({}, { additionalProperties: true });

const Reaction = Type.Object(
  {
    emoji: Type.String(),
    from: Type.Enum(['customer', 'business']),
    at: DATE_TIME,
    serviceMessageId: Type.String(),
    metaMessageId: Type.String(),
  },
  { title: 'MessageReaction' },
);

/** How far a message is; `received` for inbound ones. */
const MESSAGE_STATES = ['received', 'queued', 'sending', 'accepted', 'failed', 'unknown'];

/** A message as lists and the message itself show it. */
export const Message = Type.Object(
  {
    serviceMessageId: Type.String(),
    /** Null until upstream has accepted an outbound message. */
    metaMessageId: nullable(Type.String()),
    conversationId: Type.String(),
    phoneNumberId: Type.String(),
    direction: Type.Enum(['inbound', 'outbound']),
    type: Type.String(),
    timestamp: nullable(DATE_TIME),
    createdAt: DATE_TIME,
    /** Of inbound messages: when the business marked it as read by its own id; marking a later one does not count. */
    readAt: Type.Optional(nullable(DATE_TIME)),
    state: Type.Enum(MESSAGE_STATES),
    status: nullable(Type.String()),
    statusAt: nullable(DATE_TIME),
    contextId: Type.Optional(Type.String()),
    replyTo: Type.Optional(
      Type.Object({ serviceMessageId: nullable(Type.String()), metaMessageId: Type.String() }),
    ),
    targetId: Type.Optional(Type.String()),
    /** Of a placeholder: the message that upstream sent under its id later. */
    supersededBy: Type.Optional(Type.String()),
    /** Of a group's messages: who of the group wrote it, the user id if there is one, else the wa_id. */
    sender: Type.Optional(Type.String()),
    mediaPending: Type.Boolean(),
    mediaUrl: nullable(Type.String()),
    mediaError: Type.Optional(MediaError),
    mediaType: Type.Optional(Type.String()),
    mimeType: Type.Optional(Type.String()),
    caption: Type.Optional(Type.String()),
    fileName: Type.Optional(Type.String()),
    reactions: Type.Array(Reaction),
    editedAt: Type.Optional(DATE_TIME),
    /** The edit message, which has the media that the edit brought. */
    editedBy: Type.Optional(Type.String()),
    editedMessage: Type.Optional(UpstreamObject),
    revokedAt: Type.Optional(DATE_TIME),
    message: UpstreamObject,
  },
  { title: 'Message' },
);

/** The answer of the conversation messages endpoint. */
export const MessageList = Type.Object(
  {
    data: Type.Array(Message),
    hasMore: Type.Boolean(),
    nextCursor: nullable(Type.String()),
  },
  { title: 'MessageList' },
);
