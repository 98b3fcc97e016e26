import { Type } from 'typebox';
import { OPERATION_EVENT_TYPES } from '../../ops/feed/operation-events.ts';
import { dateTime, named, nullable, text } from '../external/schema-kit.ts';

/** An event of the feed and of its hooks. */
export const OperationEvent = named('OperationEvent', {
  id: text('opn_4711'),
  type: Type.Enum([...OPERATION_EVENT_TYPES], { examples: ['key.created'] }),
  occurredAt: dateTime('2026-11-20T10:00:00.000Z'),
  sequence: Type.Integer({ examples: [4711] }),
  tenant: nullable(Type.Object({ userId: Type.Integer(), externalId: nullable(Type.String()) }), {
    userId: 7,
    externalId: 'acme',
  }),
  wabaId: nullable(Type.String(), '900000000000101'),
  actor: text('platform key 3'),
  data: Type.Object(
    {},
    { additionalProperties: true, examples: [{ keyId: '3', scopes: 'send, manage_webhooks' }] },
  ),
});
