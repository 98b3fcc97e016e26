import { documented } from '../openapi/documented.ts';

const MESSAGE = {
  serviceMessageId: '1042',
  metaMessageId: 'wamid.HBgLMTIwMjU1NTAxNDMVAgASGBQzQUEyOUI4MDVFNjE0NEU0NzgwMAA=',
  conversationId: '42',
  phoneNumberId: '800000000000111',
  direction: 'inbound',
  type: 'image',
  timestamp: '2026-11-21T09:29:58.000Z',
  createdAt: '2026-11-21T09:30:00.001Z',
  state: 'received',
  status: null,
  statusAt: null,
  mediaPending: false,
  mediaUrl: 'https://gateway.example/received_media/pP0mK1v3rQ9sZ2xYb7Lw4tNc6uHd8eFa',
  mediaType: 'image',
  mimeType: 'image/jpeg',
  caption: 'Front door',
  reactions: [],
  message: {
    from: '12025550143',
    id: 'wamid.HBgLMTIwMjU1NTAxNDMVAgASGBQzQUEyOUI4MDVFNjE0NEU0NzgwMAA=',
    timestamp: '1790000007',
    type: 'image',
    image: { caption: 'Front door', mime_type: 'image/jpeg', id: '6000000000000001' },
  },
};

const CONVERSATION = {
  id: '42',
  phoneNumberId: '800000000000111',
  customer: { waId: '12025550143', userId: null, name: 'Asha Tester', username: null },
  lastMessageAt: '2026-11-21T09:30:00.001Z',
  createdAt: '2026-11-02T16:20:11.500Z',
};

const conversation = { id: { description: 'The id of the conversation.', example: '42' } };
const message = { id: { description: 'The `serviceMessageId`.', example: '1042' } };

/** What the document says about conversations. */
export const conversationDocs = {
  list: documented({
    operationId: 'listConversations',
    summary: 'List conversations',
    description: 'The most recently active first.',
    tag: 'Conversations',
    parameters: {
      order: {
        description: '`asc` lists without gaps, and always gives a cursor to go on from later.',
        example: 'desc',
      },
      phoneNumberId: { description: 'Conversations of this number only.', example: '800000000000111' },
      customer: {
        description: 'The conversation with this customer only: a phone number or a user id.',
        example: '12025550143',
      },
      since: { description: 'Conversations active at this time or later.', example: '2026-11-21T00:00:00Z' },
    },
    answers: {
      200: {
        description: 'A page of conversations.',
        example: { data: [CONVERSATION], hasMore: true, nextCursor: 'AAABlq3kZ0B2' },
      },
    },
  }),
  get: documented({
    operationId: 'getConversation',
    summary: 'Get a conversation',
    description:
      'With its newest message, how many there are, and whether the customer service window is open.',
    tag: 'Conversations',
    parameters: conversation,
    answers: {
      200: {
        description: 'The conversation.',
        example: {
          ...CONVERSATION,
          phoneNumber: {
            phoneNumberId: '800000000000111',
            displayPhoneNumber: '+1 202-555-0100',
            verifiedName: 'Fixture Store',
          },
          messageCounts: { inbound: 12, outbound: 9, isComplete: true },
          customerServiceWindow: {
            isOpen: true,
            expiresAt: '2026-11-22T09:29:58.000Z',
            lastInboundAt: '2026-11-21T09:29:58.000Z',
          },
          lastMessage: MESSAGE,
        },
      },
    },
  }),
  messages: documented({
    operationId: 'listConversationMessages',
    summary: 'List the messages of a conversation',
    description:
      'In both directions, the newest first. For the media of a message, ask until `mediaPending` is false and `mediaUrl` is a link.',
    tag: 'Conversations',
    parameters: {
      ...conversation,
      order: {
        description: '`asc`: the oldest first, and the last page gives a cursor to go on from later.',
        example: 'desc',
      },
      direction: { description: 'Messages of this direction only.', example: 'inbound' },
      type: { description: 'Messages of this type only.', example: 'image' },
      since: { description: 'Messages stored at this time or later.', example: '2026-11-21T00:00:00Z' },
      until: { description: 'Messages stored before this time.', example: '2026-11-22T00:00:00Z' },
    },
    answers: {
      200: {
        description: 'A page of messages.',
        example: { data: [MESSAGE], hasMore: false, nextCursor: null },
      },
    },
  }),
};

/** What the document says about single messages. */
export const messageDocs = {
  get: documented({
    operationId: 'getMessage',
    summary: 'Get a message',
    description: 'Inbound or outbound, with its state and each status that upstream reported.',
    tag: 'Messages',
    parameters: message,
    answers: {
      200: {
        description: 'The message.',
        example: {
          ...MESSAGE,
          serviceMessageId: '4711',
          metaMessageId: 'wamid.HBgLMTIwMjU1NTAxNDMVAgARGBJDQTBERjJDOTVBQTE0NEMxRDAA',
          direction: 'outbound',
          type: 'text',
          status: 'delivered',
          statusAt: '2026-11-21T09:30:04.000Z',
          mediaUrl: null,
          state: 'accepted',
          to: '+12025550143',
          attempts: 1,
          statuses: [
            {
              status: 'delivered',
              timestamp: '2026-11-21T09:30:04.000Z',
              receivedAt: '2026-11-21T09:30:04.310Z',
              recipientId: '12025550143',
              pricing: { billable: true, pricing_model: 'PMP', type: 'regular', category: 'utility' },
            },
          ],
          message: {
            phoneNumberId: '800000000000111',
            to: '+12025550143',
            type: 'text',
            text: { body: 'Your order is ready.' },
          },
        },
      },
    },
  }),
  media: documented({
    operationId: 'getMessageMedia',
    summary: 'Get the media of a message',
    description: 'Of an inbound message, also while it is awaited. `mediaUrl` needs no API key.',
    tag: 'Media',
    parameters: message,
    answers: {
      200: {
        description: 'The media.',
        example: {
          serviceMessageId: '1042',
          metaMessageId: 'wamid.HBgLMTIwMjU1NTAxNDMVAgASGBQzQUEyOUI4MDVFNjE0NEU0NzgwMAA=',
          mediaPending: false,
          mediaType: 'image',
          mimeType: 'image/jpeg',
          mediaPath: '/received_media/pP0mK1v3rQ9sZ2xYb7Lw4tNc6uHd8eFa',
          mediaUrl: 'https://gateway.example/received_media/pP0mK1v3rQ9sZ2xYb7Lw4tNc6uHd8eFa',
          caption: 'Front door',
          sizeBytes: 184_233,
          sha256: '7d0b1f6a4b0f5c1f6f0f9a6d3c2b1a09f8e7d6c5b4a39281706f5e4d3c2b1a09',
        },
      },
    },
  }),
};
