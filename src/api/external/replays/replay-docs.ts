import { documented } from '../../openapi/documented.ts';

const REPLAY = {
  id: '12',
  state: 'running',
  selection: {
    deliveryIds: null,
    eventIds: null,
    endpointId: '3',
    from: '2026-11-19T00:00:00.000Z',
    to: '2026-11-21T09:30:00.000Z',
    eventTypes: null,
    states: ['failed', 'dropped'],
  },
  total: 1_250,
  queued: 300,
  skipped: 2,
  requestedBy: 'API key 3',
  createdAt: '2026-11-21T09:30:00.000Z',
  finishedAt: null,
};

const WITH_OUTCOMES = { ...REPLAY, outcomes: { pending: 40, delivered: 255, failed: 5, dropped: 0 } };

/** Where a replay of one event is begun, its answer is such a replay too. */
export const REPLAY_EXAMPLE = REPLAY;

const parameters = { id: { description: 'The id of the replay.', example: '12' } };

const SWITCHES = {
  pause: {
    summary: 'Pause a replay',
    description: 'Queues nothing more until it is resumed.',
    state: 'paused',
  },
  resume: { summary: 'Resume a replay', description: 'Goes on where it was paused.', state: 'running' },
  cancel: {
    summary: 'Cancel a replay',
    description: 'Queues nothing more, for good. What is queued is still sent.',
    state: 'cancelled',
  },
} as const;

/** What the document says about pausing, resuming and cancelling. */
export function switchDocs(action: keyof typeof SWITCHES) {
  const { summary, description, state } = SWITCHES[action];
  return documented({
    operationId: `${action}Replay`,
    summary,
    description,
    tag: 'Replays',
    parameters,
    errors: ['replay_finished'],
    requests: { empty: {} },
    answers: { 200: { description: 'The replay as it is now.', example: { ...WITH_OUTCOMES, state } } },
  });
}

export const replayDocs = {
  list: documented({
    operationId: 'listReplays',
    summary: 'List replays',
    description: 'The newest first.',
    tag: 'Replays',
    answers: {
      200: {
        description: 'A page of replays.',
        example: { data: [REPLAY], hasMore: false, nextCursor: null },
      },
    },
  }),
  get: documented({
    operationId: 'getReplay',
    summary: 'Get a replay',
    description: 'How far it is, and what came of what it sent.',
    tag: 'Replays',
    parameters,
    answers: { 200: { description: 'The replay.', example: WITH_OUTCOMES } },
  }),
  start: documented({
    operationId: 'startReplay',
    summary: 'Send many events again',
    description:
      'Either `deliveryIds`, or a filter of at least one other member. `not_sent` in `states` means events that an endpoint takes now and never had; without `states` they are part of it. What is sent again goes behind new events, with the same `webhook-id`. With `dryRun` it is counted only.',
    tag: 'Replays',
    errors: [
      'unknown_endpoint',
      'unknown_delivery',
      'nothing_to_replay',
      'too_many_replays',
      'replay_too_large',
    ],
    requests: {
      outage: { endpointId: '3', states: ['failed', 'dropped'], from: '2026-11-19T00:00:00Z' },
      deliveries: { deliveryIds: ['dlv_019aa2b37c4d7e8f9a0b1c2d3e4f5062'] },
      count: { eventTypes: ['message', 'payment'], from: '2026-11-19T00:00:00Z', dryRun: true },
    },
    answers: {
      200: {
        description: 'With `dryRun`: what would be sent.',
        example: {
          dryRun: true,
          deliveries: 1_250,
          byType: { message: 1_000, payment: 250 },
          byEndpoint: { 3: 1_250 },
          oldest: '2026-11-19T00:00:04.120Z',
          newest: '2026-11-21T09:29:58.001Z',
          skipped: { open: 2, noBody: 0, endpointGone: 0 },
        },
      },
      201: { description: 'The replay has begun.', example: REPLAY, headers: ['Location'] },
    },
  }),
};
