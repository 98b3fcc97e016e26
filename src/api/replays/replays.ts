import type { Command } from 'commander';
import { Type } from 'typebox';
import { findDeliveriesOfEvents } from '../../features/delivery-log/deliveries.ts';
import {
  countReplay,
  replayOf,
  replaysOf,
  startReplay,
  switchReplay,
  wabaOfReplay,
} from '../../features/replays/replays.ts';
import { publicDeliveryId, publicEventId } from '../../platform/public-ids.ts';
import { RequestError } from '../../platform/request-input.ts';
import { EventParams } from '../deliveries/event-schemas.ts';
import { eventOfPath } from '../deliveries/events.ts';
import { ApiError } from '../errors/api-error.ts';
import { PageQuery, readPage } from '../external/page.ts';
import { closed, listOf } from '../external/schema-kit.ts';
import { operation, restOperation } from '../operations/operation.ts';
import { commandGroup, operationCommand } from '../operations/operation-command.ts';
import {
  EndpointId,
  OF_REPLAY,
  Replay,
  ReplayCount,
  ReplayRequest,
  ReplayWithOutcomes,
  replayJson,
  selectionOf,
} from './replay-schemas.ts';
import { describeCount, describeReplay, describeReplays } from './replay-text.ts';

const list = operation({
  id: 'listReplays',
  method: 'GET',
  path: '/api/external/replays',
  scope: 'readWebhooks',
  summary: 'List replays',
  description: 'The newest first.',
  tag: 'Replays',
  query: PageQuery,
  answers: { 200: { description: 'A page of replays.', schema: listOf(Replay) } },
  run: (call, input) =>
    readPage(call, input, {
      name: 'replays',
      find: ([beforeId = null], limit) => replaysOf(call.tools, call.wabaId, { beforeId, ...limit }),
      position: ({ replayId }) => [replayId],
    }),
  json: ({ rows, ...page }) => ({ data: rows.map(replayJson), ...page }),
  command: {
    name: 'replay list',
    help: 'list the newest replays of a WABA, or of all',
    example: 'replay list',
    waba: 'the WABA',
    show: ({ rows }, { call }) => describeReplays(rows, call.wabaId),
    showAll: (pages) => describeReplays(pages.flatMap(({ rows }) => rows)),
  },
});

const get = operation({
  id: 'getReplay',
  method: 'GET',
  path: '/api/external/replays/:id',
  scope: 'readWebhooks',
  summary: 'Get a replay',
  description: 'Progress and delivery outcomes.',
  ...OF_REPLAY,
  answers: { 200: { description: 'The replay.', schema: ReplayWithOutcomes } },
  run: ({ tools, wabaId }, { id }) => replayOf(tools, wabaId, id),
  json: replayJson,
  command: {
    name: 'replay show',
    help: 'show the progress of a replay and the outcomes of its deliveries',
    example: 'replay show 7',
    waba: wabaOfReplay,
    show: (replay, { tools }) => describeReplay(tools.config, replay),
  },
});

const SWITCHES = [
  {
    action: 'pause',
    summary: 'Pause a replay',
    description: 'Queues nothing more until it is resumed.',
    state: 'paused',
    help: 'pause a replay: nothing more is sent until it is resumed, except retries',
  },
  {
    action: 'resume',
    summary: 'Resume a replay',
    description: 'Continues where it was paused.',
    state: 'running',
    help: 'resume a paused replay',
  },
  {
    action: 'cancel',
    summary: 'Cancel a replay',
    description: 'Queues nothing more, permanently. Queued deliveries are still sent.',
    state: 'cancelled',
    help: 'end a replay; sent deliveries stay sent, the others are dropped',
  },
] as const;

const switches = SWITCHES.map(({ action, state, help, ...described }) =>
  operation({
    id: `${action}Replay`,
    method: 'POST',
    path: `/api/external/replays/:id/${action}`,
    scope: 'manageWebhooks',
    ...described,
    errors: ['replay_finished'],
    ...OF_REPLAY,
    answers: {
      200: {
        description: 'The replay after the change.',
        schema: ReplayWithOutcomes,
        example: { state },
      },
    },
    run: ({ tools, wabaId }, { id }) => switchReplay(tools, wabaId, id, action),
    json: replayJson,
    command: {
      name: `replay ${action}`,
      help,
      example: `replay ${action} 7`,
      waba: wabaOfReplay,
      show: (replay, { tools }) => describeReplay(tools.config, replay),
    },
  }),
);

const start = operation({
  id: 'startReplay',
  method: 'POST',
  path: '/api/external/replays',
  scope: 'manageWebhooks',
  summary: 'Send many events again',
  description:
    'Either `deliveryIds`, or a filter of at least one other member. `not_sent` in `states` selects events that an endpoint accepts now and never had; without `states` they are included. They are sent behind new events, with the same `webhook-id`. `dryRun` only counts. Events that are older than the URL of their endpoint require a key with `read_events` or `read` too.',
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
  body: ReplayRequest,
  answers: {
    200: { description: 'With `dryRun`: the counts.', schema: ReplayCount },
    201: { description: 'The replay has begun.', schema: Replay, headers: ['Location'] },
  },
  run: async ({ tools, wabaId, by, timeoutMs }, { dryRun, ...given }) => {
    const selection = selectionOf(given);
    return dryRun === true
      ? { count: await countReplay(tools, wabaId, selection, timeoutMs) }
      : { replay: await startReplay(tools, wabaId, selection, by.name, timeoutMs) };
  },
  status: ({ count }) => (count === undefined ? 201 : 200),
  location: ({ replay }) => (replay === undefined ? null : `/api/external/replays/${replay.replayId}`),
  json: ({ count, replay }) =>
    replay === undefined ? { dryRun: true as const, ...count } : replayJson(replay),
  command: {
    name: 'replay start',
    help: 'send the deliveries of a list or a filter again; count them first with --dry-run',
    example: 'replay start --waba 900000000000101 --endpoint 3 --states failed --dry-run',
    waba: 'whose deliveries',
    options: {
      deliveryIds: {
        flags: '--delivery <dlv_id>',
        help: 'one delivery; may be repeated, instead of a filter',
        isRepeated: true,
      },
      endpointId: {
        flags: '--endpoint <id>',
        help: 'deliveries of this endpoint (default: of every one)',
      },
      from: { flags: '--from <ISO time>', help: 'made at this time or later, such as 2027-01-31T12:00:00Z' },
      to: { flags: '--to <ISO time>', help: 'made before this time (default: now)' },
      eventTypes: {
        flags: '--types <types>',
        help: 'event types, comma separated (default: all but test)',
      },
      states: {
        flags: '--states <states>',
        help: 'delivered, failed, dropped, not_sent, comma separated (default: all)',
      },
      dryRun: { flags: '--dry-run', help: 'count the deliveries, and send nothing' },
    },
    show: async ({ count, replay }, { tools, call }) =>
      replay === undefined
        ? describeCount(count)
        : describeReplay(tools.config, await replayOf(tools, call.wabaId, replay.replayId)),
  },
});

const Target = closed({ endpointId: Type.Optional(EndpointId) });

const REPLAYED = {
  selection: {
    deliveryIds: ['dlv_019aa2b37c4d7e8f9a0b1c2d3e4f5062'],
    eventIds: ['evt_019aa2b37c4d7e8f9a0b1c2d3e4f5061'],
    endpointId: null,
    from: null,
    to: '2026-11-21T09:30:00.000Z',
    eventTypes: null,
    states: null,
  },
  total: 1,
  queued: 0,
  skipped: 0,
};

const replayEvent = restOperation({
  id: 'replayEvent',
  method: 'POST',
  path: '/api/external/events/:id/replay',
  scope: 'manageWebhooks',
  summary: 'Send an event again',
  description:
    'To every endpoint that had it or accepts such events now, or to the endpoint that the body names. The endpoint may be newer than the event if the key also has `read_events` or `read`.',
  tag: 'Events',
  errors: ['unknown_endpoint', 'nothing_to_replay', 'too_many_replays'],
  requests: { everywhere: {}, 'one endpoint': { endpointId: '3' } },
  params: EventParams,
  body: Target,
  answers: {
    201: {
      description: 'The event is sent again.',
      schema: Replay,
      example: REPLAYED,
      headers: ['Location'],
    },
  },
  run: async ({ tools, wabaId, by, reply }, { id, endpointId }) => {
    const event = await eventOfPath(tools.database, wabaId, id);
    const had = (await findDeliveriesOfEvents(tools.database, [event.id])).filter(
      (delivery) =>
        delivery.endpointMode !== null && (endpointId ?? delivery.endpointId) === delivery.endpointId,
    );
    // Of several deliveries to one endpoint the newest counts.
    const chosen = [...new Map(had.map((delivery) => [delivery.endpointId, delivery])).values()];
    const settled = chosen.filter(({ state }) => state !== 'pending');
    const deliveryIds = settled.map((delivery) => publicDeliveryId(delivery.id));
    const selection = { deliveryIds, eventIds: [publicEventId(event.id)], endpointId };
    const replay = await startReplay(tools, wabaId, selection, by.name).catch((error: unknown) => {
      const isNothing = error instanceof RequestError && error.code === 'nothing_to_replay';
      throw isNothing ? new ApiError('nothing_to_replay', { message: reasonOf(chosen) }) : error;
    });
    reply.header('location', `/api/external/replays/${replay.replayId}`);
    return replayJson(replay);
  },
});

function reasonOf(chosen: readonly object[]): string {
  return chosen.length === 0
    ? 'No endpoint has had this event or takes such events now.'
    : 'The event is still being delivered; it is not sent again meanwhile.';
}

export const REPLAY_OPERATIONS = [replayEvent, start, list, get, ...switches];

export function replayCommand(): Command {
  const parts = REPLAY_OPERATIONS.filter(({ command }) => command !== undefined).map(operationCommand);
  const description = 'send deliveries again: behind new events, each with the id and the bytes that it had';
  return commandGroup('replay', description, parts);
}
