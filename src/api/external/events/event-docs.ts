import { documented } from '../../openapi/documented.ts';
import { REPLAY_EXAMPLE } from '../replays/replay-docs.ts';
import { WEBHOOK_EXAMPLES } from '../webhook-schemas/webhook-examples.ts';

const ID = 'evt_019aa2b37c4d7e8f9a0b1c2d3e4f5061';
const DELIVERY_ID = 'dlv_019aa2b37c4d7e8f9a0b1c2d3e4f5062';

const EVENT = {
  id: ID,
  eventType: 'message',
  eventId: 'wamid.HBgLMTIwMjU1NTAxNDMVAgASGBQzQUZFOERGMUE1QTE5ODA0OTNDQQA=',
  phoneNumberId: '800000000000111',
  sequence: 1,
  createdAt: '2026-11-21T09:30:00.120Z',
  occurredAt: '2026-11-21T09:30:00.123Z',
};

const ATTEMPT = {
  attempt: 1,
  startedAt: '2026-11-21T09:30:00.140Z',
  durationMs: 82.4,
  timings: { dnsMs: 1.2, connectMs: 11.8, tlsMs: 18.3, firstByteMs: 79.9, reusedConnection: false },
  statusCode: 200,
  error: null,
  url: 'https://shop.example/hook',
  requestHeaders: { 'content-type': 'application/json', 'webhook-id': ID },
  responseHeaders: { 'content-type': 'text/plain' },
  responseBody: 'ok',
};

const DELIVERY = {
  id: DELIVERY_ID,
  endpointId: '3',
  state: 'delivered',
  lastStatusCode: 200,
  lastError: null,
  nextAttemptAt: null,
  steppedAsideAt: null,
  createdAt: '2026-11-21T09:30:00.121Z',
  finishedAt: '2026-11-21T09:30:00.223Z',
  workflowId: null,
  replayId: null,
  attemptCount: 1,
  replayOf: null,
  attempts: [ATTEMPT],
};

const parameters = {
  id: { description: 'The id of the event, as in the header `webhook-id`.', example: ID },
  order: {
    description:
      '`asc` lists without gaps, about two seconds behind, and always gives a cursor to go on from later.',
    example: 'asc',
  },
  type: { description: 'Events of this type only.', example: 'message' },
  eventId: { description: 'Events with this `eventId` only.', example: EVENT.eventId },
  phoneNumberId: { description: 'Events of this number only.', example: EVENT.phoneNumberId },
  state: { description: 'Events that stand so at one endpoint at least.', example: 'failed' },
  since: { description: 'Events stored at this time or later.', example: '2026-11-19T00:00:00Z' },
  until: { description: 'Events stored before this time.', example: '2026-11-21T00:00:00Z' },
};

/** What the document says about events. */
export const eventDocs = {
  list: documented({
    operationId: 'listEvents',
    summary: 'List events',
    description:
      'What was sent or is to be sent to webhook endpoints, the newest first; `body` is what webhooks carry, byte for byte. With `order=asc` and the cursor of the last page a tenant that was down reads everything it missed.',
    tag: 'Events',
    parameters,
    answers: {
      200: {
        description:
          'A page of events. It can hold fewer than `limit`, even none, although `hasMore` is true.',
        example: {
          data: [
            {
              ...EVENT,
              deliverySummary: { pending: 0, delivered: 1, failed: 0, dropped: 0 },
              body: WEBHOOK_EXAMPLES.message,
            },
          ],
          hasMore: true,
          nextCursor: 'AAABlq3kZ0B2',
        },
      },
    },
  }),
  get: documented({
    operationId: 'getEvent',
    summary: 'Get an event',
    description:
      'With its newest 50 deliveries and their newest 25 attempts each. Signatures and the values of your own headers are left out.',
    tag: 'Events',
    parameters,
    answers: {
      200: {
        description: 'The event.',
        example: { ...EVENT, deliveries: [DELIVERY], body: WEBHOOK_EXAMPLES.message },
      },
    },
  }),
  replay: documented({
    operationId: 'replayEvent',
    summary: 'Send an event again',
    description:
      'To every endpoint that had it or takes such events now, or to the one that the body names: also to one that is newer than the event.',
    tag: 'Events',
    parameters,
    errors: ['unknown_endpoint', 'nothing_to_replay', 'too_many_replays'],
    requests: { everywhere: {}, 'one endpoint': { endpointId: '3' } },
    answers: {
      201: {
        description: 'It is sent again.',
        example: {
          ...REPLAY_EXAMPLE,
          selection: {
            deliveryIds: [DELIVERY_ID],
            eventIds: [ID],
            endpointId: null,
            from: null,
            to: '2026-11-21T09:30:00.000Z',
            eventTypes: null,
            states: null,
          },
          total: 1,
          queued: 0,
          skipped: 0,
        },
        headers: ['Location'],
      },
    },
  }),
};
