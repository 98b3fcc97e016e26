import { Type } from 'typebox';
import { findReadableMessage, markMessageRead } from '../../messages/conversations/message-detail.ts';
import { ApiError, notFound } from '../errors/api-error.ts';
import type { ExternalApp, ExternalContext } from '../external/external-app.ts';
import { dateTime, idParams, NoQuery, objectId, text } from '../external/schema-kit.ts';
import { callUpstream } from '../external/upstream-calls.ts';
import { accountOf, SCOPES } from '../keys/api-key-auth.ts';
import { documented } from '../openapi/documented.ts';

const ReadMessage = Type.Object({
  serviceMessageId: text('4711'),
  metaMessageId: text('wamid.HBgLMTIwMjU1NTAxNDMVAgASGBQzQUZFOERGMUE1QTE5ODA0OTNDQQA='),
  /** When it was marked for the first time. */
  readAt: dateTime(),
  typingIndicator: Type.Boolean(),
});

const docs = documented({
  operationId: 'markMessageRead',
  summary: 'Mark a message as read',
  description:
    'Shows the customer that an inbound message was read. Upstream marks the ones before it too, but `readAt` is of ' +
    'the named message only. With `typingIndicator` the customer sees for up to 25 seconds, or until the next ' +
    'message, that an answer is being written. Calling it again is harmless. Upstream takes messages of the last 30 days.',
  tag: 'Messages',
  errors: ['message_not_inbound', 'upstream_refused', 'access_token_missing', 'upstream_unavailable'],
  requests: { read: {}, typing: { typingIndicator: true } },
  answers: { 200: { description: 'Upstream has marked it.' } },
});

/** POST /api/external/messages/:id/read: marks an inbound message as read upstream. */
export function markMessageReadRoute(app: ExternalApp, context: ExternalContext): void {
  const schema = {
    ...docs,
    params: idParams('The id of the object.', '4711'),
    querystring: NoQuery,
    body: Type.Object({ typingIndicator: Type.Optional(Type.Boolean()) }, { additionalProperties: false }),
    response: { 200: ReadMessage },
  };
  const { database } = context;
  app.post('/api/external/messages/:id/read', { schema, config: SCOPES.send }, async (request) => {
    const { wabaId } = accountOf(request);
    const id = objectId(request.params.id);
    const message = await findReadableMessage(database, wabaId, id);
    if (message === null) throw notFound();
    const { direction, phoneNumberId, upstreamId } = message;
    if (direction !== 'inbound' || upstreamId === null) throw new ApiError('message_not_inbound');
    const { typingIndicator = false } = request.body;
    await callUpstream(context, wabaId, (client, token) =>
      client.sendReadReceipt({ phoneNumberId, upstreamId, typingIndicator, token }),
    );
    const readAt = await markMessageRead(database, wabaId, id);
    return { serviceMessageId: id, metaMessageId: upstreamId, readAt: readAt.toISOString(), typingIndicator };
  });
}
