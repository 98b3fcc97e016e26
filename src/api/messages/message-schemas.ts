import { Type } from 'typebox';
import { dateTime, listOf, nullable, text, upstreamObject } from '../external/schema-kit.ts';
import { MediaError } from './media-members.ts';

const DATE_TIME = Type.String({ format: 'date-time' });

const META_ID = 'wamid.HBgLMTIwMjU1NTAxNDMVAgASGBQzQUEyOUI4MDVFNjE0NEU0NzgwMAA=';

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
    serviceMessageId: text('1042'),
    /** Null until upstream has accepted an outbound message. */
    metaMessageId: nullable(Type.String(), META_ID),
    conversationId: text('42'),
    phoneNumberId: text('800000000000111'),
    direction: Type.Enum(['inbound', 'outbound']),
    type: text('image'),
    timestamp: nullable(DATE_TIME, '2026-11-21T09:29:58.000Z'),
    createdAt: dateTime('2026-11-21T09:30:00.001Z'),
    /** Of inbound messages: when the business marked it as read by its own id; marking a later one does not count. */
    readAt: Type.Optional(Type.Union([DATE_TIME, Type.Null()])),
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
    mediaUrl: nullable(
      Type.String(),
      'https://gateway.example/received_media/pP0mK1v3rQ9sZ2xYb7Lw4tNc6uHd8eFa',
    ),
    mediaError: Type.Optional(MediaError),
    mediaType: Type.Optional(text('image')),
    mimeType: Type.Optional(text('image/jpeg')),
    caption: Type.Optional(text('Front door')),
    fileName: Type.Optional(Type.String()),
    reactions: Type.Array(Reaction, { examples: [[]] }),
    editedAt: Type.Optional(DATE_TIME),
    /** The edit message, which has the media that the edit brought. */
    editedBy: Type.Optional(Type.String()),
    editedMessage: Type.Optional(UpstreamObject),
    revokedAt: Type.Optional(DATE_TIME),
    message: upstreamObject({
      from: '12025550143',
      id: META_ID,
      timestamp: '1790000007',
      type: 'image',
      image: { caption: 'Front door', mime_type: 'image/jpeg', id: '6000000000000001' },
    }),
  },
  { title: 'Message' },
);

/** The answer of the conversation messages endpoint. */
export const MessageList = listOf(Message);
