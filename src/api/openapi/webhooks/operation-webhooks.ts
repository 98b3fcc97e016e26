import { OPERATION_EVENTS } from '../../../ops/feed/operation-events.ts';
import { OperationEvent } from '../../provisioning/operation-event-schema.ts';
import { type Components, documentSchema } from '../schemas.ts';
import { HEADER_DESCRIPTIONS } from './webhook-operations.ts';

type Json = Record<string, unknown>;

const HEADER_EXAMPLES = {
  'webhook-id': 'opn_4711',
  'webhook-timestamp': '1790000010',
  'webhook-signature': 'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=',
};

/** What a hook of the operator's program receives. */
export function operationWebhooks(components: Components): Json {
  const schema = documentSchema(OperationEvent, components);
  const example = {
    id: 'opn_4711',
    occurredAt: '2026-11-20T10:00:00.000Z',
    sequence: 4711,
    tenant: { userId: 7, externalId: 'acme' },
    wabaId: null,
    actor: 'platform key 3',
    data: {},
  };
  const webhooks = Object.entries(OPERATION_EVENTS).map(([type, { about }]) => [
    type,
    {
      post: {
        operationId: `receive${nameOf(type)}Event`,
        summary: about,
        description:
          'Signed with the secret of the hook. A hook can get an event twice; `webhook-id` and `sequence` stay the same.',
        security: [],
        tags: ['Service'],
        parameters: Object.entries(HEADER_EXAMPLES).map(([name, value]) => ({
          name,
          in: 'header',
          required: true,
          description: HEADER_DESCRIPTIONS[name],
          schema: { type: 'string' },
          example: value,
        })),
        requestBody: {
          required: true,
          content: { 'application/json': { schema, examples: { example: { value: { ...example, type } } } } },
        },
        responses: {
          '2XX': { description: 'The hook has the event; the content of the answer does not matter.' },
          410: { description: 'The hook is disabled; its events wait.' },
          default: { description: 'Sent again later; the events of its tenant behind it wait.' },
        },
      },
    },
  ]);
  return Object.fromEntries(webhooks);
}

function nameOf(type: string): string {
  return type
    .split(/[._]/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
}
