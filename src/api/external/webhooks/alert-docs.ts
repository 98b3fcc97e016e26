import { documented } from '../../openapi/documented.ts';

const SECRET = `whsec_${'Qm9yZWFsaXNBdXJv'.repeat(2)}`;

const tag = 'Endpoint alerts';

/** What the document says about alerts and where they go. */
export const alertDocs = {
  list: documented({
    operationId: 'listEndpointAlerts',
    summary: 'List alerts about endpoints',
    description:
      'The newest first, also those that were sent nowhere. `alert` is `endpoint.failing`, `endpoint.disabled`, ' +
      '`endpoint.recovered` or `endpoint.deliveries_failed`; more can come.',
    tag,
    answers: {
      200: {
        description: 'A page of alerts.',
        example: {
          data: [
            {
              id: 'alr_019aa2b37c4d7e8f9a0b1c2d3e4f5063',
              endpointId: '3',
              alert: 'endpoint.failing',
              state: 'delivered',
              attempts: 1,
              lastError: null,
              createdAt: '2026-11-21T09:30:00.000Z',
              deliveredAt: '2026-11-21T09:30:00.210Z',
              givenUpAt: null,
            },
          ],
          hasMore: false,
          nextCursor: null,
        },
      },
    },
  }),
  getUrl: documented({
    operationId: 'getOperationsUrl',
    summary: 'Where alerts go',
    description: 'Null when they go nowhere.',
    tag,
    answers: {
      200: { description: 'The URL.', example: { url: 'https://shop.example/operations' } },
    },
  }),
  setUrl: documented({
    operationId: 'setOperationsUrl',
    summary: 'Have alerts sent to a URL',
    description:
      '`secret` is in the first answer only; later changes of the URL keep it and answer null. ' +
      '`secretRotationAdvised`: the URL leads to another server, and the one before still knows the secret.',
    tag,
    errors: ['invalid_url', 'url_is_webhook_endpoint'],
    requests: { url: { url: 'https://shop.example/operations' } },
    answers: {
      200: {
        description: 'The URL, and the secret that signs alerts.',
        example: { url: 'https://shop.example/operations', secret: SECRET, secretRotationAdvised: false },
      },
    },
  }),
  deleteUrl: documented({
    operationId: 'deleteOperationsUrl',
    summary: 'Have alerts sent nowhere',
    description: 'They are still listed.',
    tag,
    answers: { 200: { description: 'There is no URL any more.', example: { url: null } } },
  }),
  rotateSecret: documented({
    operationId: 'rotateOperationsUrlSecret',
    summary: 'Make a new secret for alerts',
    description: 'The old one ends at once; the new one is in this answer only.',
    tag,
    errors: ['no_operations_url'],
    requests: { empty: {} },
    answers: {
      200: {
        description: 'The new secret.',
        example: { url: 'https://shop.example/operations', secret: SECRET, secretRotationAdvised: false },
      },
    },
  }),
};
