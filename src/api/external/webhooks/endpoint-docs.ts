import { documented, type ParameterDocs } from '../../openapi/documented.ts';

const ENDPOINT = {
  id: '3',
  url: 'https://shop.example/hook',
  description: 'shop server',
  eventTypes: ['message', 'status'],
  phoneNumberIds: null,
  customHeaderNames: ['X-Token'],
  retryScheduleSeconds: null,
  timeoutMs: null,
  signatureProfile: 'standard',
  maxInFlight: null,
  rateLimitPerSecond: null,
  blockLimitSeconds: null,
  orderScope: 'event',
  wantedOrderScope: null,
  mode: 'open',
  modeReason: null,
  modeChangedAt: '2026-11-20T10:00:00.000Z',
  failingSince: null,
  nextProbeAt: null,
  previousSecretExpiresAt: null,
  createdAt: '2026-11-20T10:00:00.000Z',
  updatedAt: '2026-11-20T10:00:00.000Z',
};

const WAITING = {
  count: 2,
  more: false,
  due: 1,
  queued: 0,
  held: 0,
  unreleased: 0,
  suspended: 0,
  retrying: 1,
  claimed: 0,
  oldestMs: 4_200,
};

const WITH_WAITING = { ...ENDPOINT, waiting: WAITING };

const SECRET = `whsec_${'MfKQ9r8GKYqrTwjU'.repeat(2)}`;

const parameters: Record<string, ParameterDocs> = {
  id: { description: 'The id of the endpoint.', example: '3' },
  interval: { description: 'The length of a step.', example: 'hour' },
  since: { description: 'The start of the first step.', example: '2026-11-20T00:00:00Z' },
  until: { description: 'The end of the last step; not in it.', example: '2026-11-21T00:00:00Z' },
};

const tag = 'Webhook endpoints';

/** What the document says about webhook endpoints. */
export const endpointDocs = {
  list: documented({
    operationId: 'listWebhookEndpoints',
    summary: 'List webhook endpoints',
    description: 'The oldest first, with what waits for each. Secrets and values of headers are never shown.',
    tag,
    answers: {
      200: {
        description: 'A page of endpoints.',
        example: { data: [WITH_WAITING], hasMore: false, nextCursor: null },
      },
    },
  }),
  create: documented({
    operationId: 'createWebhookEndpoint',
    summary: 'Add a webhook endpoint',
    description: 'Up to 100 in a WABA. `secret` is in this answer only.',
    tag,
    errors: ['invalid_url', 'unknown_phone_number', 'url_is_webhook_endpoint', 'too_many_endpoints'],
    requests: {
      'everything by default': { url: 'https://shop.example/hook' },
      'some events, own header': {
        url: 'https://shop.example/hook',
        description: 'shop server',
        eventTypes: ['message', 'status'],
        customHeaders: { 'X-Token': 'a value of yours' },
      },
    },
    answers: {
      201: {
        description: 'The endpoint; events that come from now on are sent to it.',
        example: { ...ENDPOINT, secret: SECRET },
        headers: ['Location'],
      },
    },
  }),
  get: documented({
    operationId: 'getWebhookEndpoint',
    summary: 'Get a webhook endpoint',
    description: 'With what waits for it.',
    tag,
    parameters,
    answers: { 200: { description: 'The endpoint.', example: WITH_WAITING } },
  }),
  update: documented({
    operationId: 'updateWebhookEndpoint',
    summary: 'Change a webhook endpoint',
    description:
      'Changes the members that are given; null goes back to the default. When scheme, host or port of `url` change, ' +
      '`customHeaders` that are not given in the same request are forgotten, because their values were meant for the ' +
      'server before: `droppedHeaderNames` names them. `secretRotationAdvised` is then true: the server before still ' +
      'knows the signing secret.',
    tag,
    parameters,
    errors: ['invalid_url', 'unknown_phone_number', 'url_is_webhook_endpoint'],
    requests: { url: { url: 'https://shop.example/hook' }, 'all events': { eventTypes: null } },
    answers: {
      200: {
        description: 'The endpoint as it is now.',
        example: { ...WITH_WAITING, droppedHeaderNames: [], secretRotationAdvised: false },
      },
    },
  }),
  delete: documented({
    operationId: 'deleteWebhookEndpoint',
    summary: 'Delete a webhook endpoint',
    description: 'What waits for it is dropped; the log stays.',
    tag,
    parameters,
    answers: {
      200: { description: 'How many were dropped.', example: { id: '3', deleted: true, dropped: 2 } },
    },
  }),
  pause: documented({
    operationId: 'pauseWebhookEndpoint',
    summary: 'Pause a webhook endpoint',
    description: 'Events wait until it is enabled.',
    tag,
    parameters,
    requests: { 'without a reason': {}, 'with a reason': { reason: 'release' } },
    answers: {
      200: {
        description: 'The endpoint as it is now.',
        example: { ...WITH_WAITING, mode: 'paused', modeReason: 'release' },
      },
    },
  }),
  enable: documented({
    operationId: 'enableWebhookEndpoint',
    summary: 'Enable a webhook endpoint',
    description: 'Lets what waits go, or drops it: say which when any does.',
    tag,
    parameters,
    errors: ['waiting_choice_required'],
    requests: { 'nothing waits': {}, 'send what waits': { waiting: 'send' }, 'drop it': { waiting: 'drop' } },
    answers: {
      200: { description: 'The endpoint as it is now.', example: { ...WITH_WAITING, dropped: 0 } },
    },
  }),
  rotateSecret: documented({
    operationId: 'rotateWebhookEndpointSecret',
    summary: 'Give a webhook endpoint a new secret',
    description:
      '`secret` is in this answer only. The old one signs too for `overlapHours`, 24 unless given. Bring one of your own if you like.',
    tag,
    parameters,
    errors: ['secret_in_use'],
    requests: { 'a day of both': {}, 'at once': { overlapHours: 0 } },
    answers: {
      200: {
        description: 'The new secret.',
        example: { id: '3', secret: SECRET, previousSecretExpiresAt: '2026-11-22T09:30:00.000Z' },
      },
    },
  }),
  test: documented({
    operationId: 'testWebhookEndpoint',
    summary: 'Send a test event',
    description:
      'To this endpoint only, also while it is paused, once. Waits up to 8 seconds for what comes of it.',
    tag,
    parameters,
    requests: { empty: {} },
    answers: {
      200: { description: 'What came of it.', example: testOutcome('delivered', 200, 82.4) },
      202: {
        description: 'Nothing yet: look at `GET /api/external/events/{id}`.',
        example: testOutcome('pending', null, null),
      },
    },
  }),
  statistics: documented({
    operationId: 'getWebhookEndpointStatistics',
    summary: 'Statistics of a webhook endpoint',
    description:
      'Attempts per minute or hour, 1,440 steps at most, and what waits. Test events do not count.',
    tag,
    parameters,
    answers: {
      200: {
        description: 'The steps in which there were attempts.',
        example: {
          endpointId: '3',
          interval: 'hour',
          since: '2026-11-20T10:00:00.000Z',
          until: '2026-11-21T10:00:00.000Z',
          total: { successes: 1_180, failures: 12, meanDurationMs: 74.2 },
          waiting: WAITING,
          data: [{ at: '2026-11-20T10:00:00.000Z', successes: 1_180, failures: 12, meanDurationMs: 74.2 }],
        },
      },
    },
  }),
};

function testOutcome(state: string, statusCode: number | null, durationMs: number | null) {
  return {
    endpointId: '3',
    id: 'evt_019aa2b37c4d7e8f9a0b1c2d3e4f5061',
    eventId: 'test_1',
    deliveryId: 'dlv_019aa2b37c4d7e8f9a0b1c2d3e4f5062',
    state,
    statusCode,
    error: null,
    durationMs,
  };
}
