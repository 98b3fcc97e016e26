import { Type } from 'typebox';
import { callIdOf } from '../../features/messages/calls.ts';
import {
  findReadableMessage,
  markMessageRead,
} from '../../features/messages/conversations/message-detail.ts';
import { ApiError, notFound } from '../errors/api-error.ts';
import { closed, dateTime, objectPath, text } from '../external/schema-kit.ts';
import { callUpstream } from '../external/upstream-calls.ts';
import { restOperation } from '../operations/operation.ts';

const ReadMessage = Type.Object({
  serviceMessageId: text('4711'),
  metaMessageId: text('wamid.HBgLMTIwMjU1NTAxNDMVAgASGBQzQUZFOERGMUE1QTE5ODA0OTNDQQA='),
  /** When it was marked for the first time. */
  readAt: dateTime(),
  typingIndicator: Type.Boolean(),
});

export const markMessageReadOperation = restOperation({
  id: 'markMessageRead',
  method: 'POST',
  path: '/api/external/messages/:id/read',
  scope: 'send',
  summary: 'Mark a message as read',
  description:
    'Shows the customer that an inbound message was read. Upstream also marks earlier messages, but `readAt` is of ' +
    'the named message only. With `typingIndicator` the customer sees for up to 25 seconds, or until the next ' +
    'message, that an answer is being written. Calling it again is harmless. Upstream accepts messages of the last 30 days.',
  tag: 'Messages',
  errors: ['message_not_inbound', 'upstream_refused', 'access_token_missing', 'upstream_unavailable'],
  requests: { read: {}, typing: { typingIndicator: true } },
  ...objectPath('The id of the object.', '4711'),
  body: closed({ typingIndicator: Type.Optional(Type.Boolean()) }),
  answers: { 200: { schema: ReadMessage, description: 'Upstream has marked it.' } },
  run: async (call, { id, typingIndicator = false }) => {
    const { database, wabaId } = call;
    const message = await findReadableMessage(database, wabaId, id);
    if (message === null) throw notFound();
    const { direction, phoneNumberId, upstreamId } = message;
    const isMessage = upstreamId !== null && callIdOf(upstreamId) === null;
    if (direction !== 'inbound' || !isMessage) throw new ApiError('message_not_inbound');
    await callUpstream(call, wabaId, (client, token) =>
      client.sendReadReceipt({ phoneNumberId, upstreamId, typingIndicator, token }),
    );
    const readAt = await markMessageRead(database, wabaId, id);
    return { serviceMessageId: id, metaMessageId: upstreamId, readAt, typingIndicator };
  },
});
