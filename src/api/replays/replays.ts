import { Type } from 'typebox';
import { findDeliveriesOfEvents } from '../../deliveries/log/deliveries.ts';
import { publicDeliveryId, publicEventId } from '../../platform/public-ids.ts';
import { RequestError } from '../../platform/request-input.ts';
import { countReplay, replayOf, replaysOf, startReplay, switchReplay } from '../../replays/replays.ts';
import { EventParams } from '../deliveries/event-schemas.ts';
import { eventOfPath } from '../deliveries/events.ts';
import { ApiError } from '../errors/api-error.ts';
import type { ExternalApp, ExternalContext } from '../external/external-app.ts';
import { PAGE_PARAMETERS, pageOf, positionOf, rowsToRead } from '../external/page.ts';
import {
  accountObjectId,
  count,
  dateTime,
  listOf,
  NoBody,
  NoQuery,
  nullable,
} from '../external/schema-kit.ts';
import { accountOf, apiActorOf, SCOPES } from '../keys/api-key-auth.ts';
import { documented } from '../openapi/documented.ts';
import {
  EndpointId,
  Replay,
  ReplayParams,
  ReplayRequest,
  ReplayWithOutcomes,
  replayJson,
  selectionOf,
} from './replay-schemas.ts';

/** GET /api/external/replays: the newest first. */
export function listReplays(app: ExternalApp, { accounts, cursors }: ExternalContext): void {
  const schema = {
    ...documented({
      operationId: 'listReplays',
      summary: 'List replays',
      description: 'The newest first.',
      tag: 'Replays',
      answers: { 200: { description: 'A page of replays.' } },
    }),
    querystring: Type.Object(PAGE_PARAMETERS, { additionalProperties: false }),
    response: { 200: listOf(Replay) },
  };
  app.get('/api/external/replays', { schema, config: SCOPES.readWebhooks }, async (request) => {
    const { wabaId } = accountOf(request);
    const { limit, cursor } = request.query;
    const scope = [wabaId, 'replays'];
    const [beforeId = null] = positionOf(cursors, scope, cursor) ?? [];
    const found = await replaysOf(accounts, wabaId, { beforeId, limit: rowsToRead(limit) });
    const { rows, ...page } = pageOf(found, limit, ({ replayId }) => cursors.encode(scope, [replayId]));
    return { data: rows.map(replayJson), ...page };
  });
}

/** GET /api/external/replays/:id */
export function getReplay(app: ExternalApp, { accounts }: ExternalContext): void {
  const schema = {
    ...documented({
      operationId: 'getReplay',
      summary: 'Get a replay',
      description: 'How far it is, and what came of what it sent.',
      tag: 'Replays',
      answers: { 200: { description: 'The replay.' } },
    }),
    params: ReplayParams,
    querystring: NoQuery,
    response: { 200: ReplayWithOutcomes },
  };
  app.get('/api/external/replays/:id', { schema, config: SCOPES.readWebhooks }, async (request) => {
    const { wabaId } = accountOf(request);
    return replayJson(await replayOf(accounts, wabaId, accountObjectId(request.params.id)));
  });
}

const SWITCHES = [
  {
    action: 'pause',
    summary: 'Pause a replay',
    description: 'Queues nothing more until it is resumed.',
    state: 'paused',
  },
  {
    action: 'resume',
    summary: 'Resume a replay',
    description: 'Goes on where it was paused.',
    state: 'running',
  },
  {
    action: 'cancel',
    summary: 'Cancel a replay',
    description: 'Queues nothing more, for good. What is queued is still sent.',
    state: 'cancelled',
  },
] as const;

/** POST /api/external/replays/:id/pause, …/resume, …/cancel */
export function switchReplays(app: ExternalApp, { accounts }: ExternalContext): void {
  for (const { action, state, ...said } of SWITCHES) {
    const schema = {
      ...documented({
        operationId: `${action}Replay`,
        ...said,
        tag: 'Replays',
        errors: ['replay_finished'],
        requests: { empty: {} },
        answers: { 200: { description: 'The replay as it is now.', example: { state } } },
      }),
      params: ReplayParams,
      querystring: NoQuery,
      body: NoBody,
      response: { 200: ReplayWithOutcomes },
    };
    const options = { schema, config: SCOPES.manageWebhooks };
    app.post(`/api/external/replays/:id/${action}`, options, async (request) => {
      const { wabaId } = accountOf(request);
      return replayJson(
        await switchReplay(
          { ...accounts, actor: apiActorOf(request) },
          wabaId,
          accountObjectId(request.params.id),
          action,
        ),
      );
    });
  }
}

const ReplayCount = Type.Object(
  {
    dryRun: Type.Literal(true),
    deliveries: count(1_250),
    byType: Type.Record(Type.String(), Type.Integer(), { examples: [{ message: 1_000, payment: 250 }] }),
    byEndpoint: Type.Record(Type.String(), Type.Integer(), { examples: [{ 3: 1_250 }] }),
    oldest: nullable(dateTime(), '2026-11-19T00:00:04.120Z'),
    newest: nullable(dateTime(), '2026-11-21T09:29:58.001Z'),
    skipped: Type.Object({ pending: count(2), noBody: Type.Integer(), endpointGone: Type.Integer() }),
  },
  { title: 'ReplayCount' },
);

const docs = documented({
  operationId: 'startReplay',
  summary: 'Send many events again',
  description:
    'Either `deliveryIds`, or a filter of at least one other member. `not_sent` in `states` means events that an endpoint takes now and never had; without `states` they are part of it. What is sent again goes behind new events, with the same `webhook-id`. With `dryRun` it is counted only. Events that are older than the URL of their endpoint need a key with `read_events` or `read` too.',
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
    200: { description: 'With `dryRun`: what would be sent.' },
    201: { description: 'The replay has begun.', headers: ['Location'] },
  },
});

/** POST /api/external/replays: sends deliveries again, or with `dryRun` counts what that would be. */
export function startReplayOfMany(app: ExternalApp, { accounts }: ExternalContext): void {
  const schema = {
    ...docs,
    querystring: NoQuery,
    body: ReplayRequest,
    response: { 200: ReplayCount, 201: Replay },
  };
  app.post('/api/external/replays', { schema, config: SCOPES.manageWebhooks }, async (request, reply) => {
    const { wabaId, keyId } = accountOf(request);
    const selection = selectionOf(request.body);
    if (request.body.dryRun === true) {
      const { oldest, newest, ...count } = await countReplay(accounts, wabaId, selection);
      const times = { oldest: oldest?.toISOString() ?? null, newest: newest?.toISOString() ?? null };
      return { dryRun: true as const, ...count, ...times };
    }
    const replay = await startReplay(
      { ...accounts, actor: apiActorOf(request) },
      wabaId,
      selection,
      `API key ${keyId}`,
    );
    reply.code(201).header('location', `/api/external/replays/${replay.replayId}`);
    return replayJson(replay);
  });
}

const Target = Type.Object({ endpointId: Type.Optional(EndpointId) }, { additionalProperties: false });

const replayEventDocs = documented({
  operationId: 'replayEvent',
  summary: 'Send an event again',
  description:
    'To every endpoint that had it or takes such events now, or to the one that the body names: also to one that is newer than the event, if the key has `read_events` or `read` too.',
  tag: 'Events',
  errors: ['unknown_endpoint', 'nothing_to_replay', 'too_many_replays'],
  requests: { everywhere: {}, 'one endpoint': { endpointId: '3' } },
  answers: {
    201: {
      description: 'It is sent again.',
      example: {
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
      },
      headers: ['Location'],
    },
  },
});

/** POST /api/external/events/:id/replay: sends one event to the endpoints that had it or take it now, or to one of them. */
export function replayEvent(app: ExternalApp, { accounts }: ExternalContext): void {
  const schema = {
    ...replayEventDocs,
    params: EventParams,
    querystring: NoQuery,
    body: Target,
    response: { 201: Replay },
  };
  const options = { schema, config: SCOPES.manageWebhooks };
  app.post('/api/external/events/:id/replay', options, async (request, reply) => {
    const { wabaId, keyId } = accountOf(request);
    const { database } = accounts;
    const event = await eventOfPath(database, wabaId, request.params.id);
    const { endpointId } = request.body;
    const had = (await findDeliveriesOfEvents(database, [event.id])).filter(
      (delivery) =>
        delivery.endpointMode !== null && (endpointId ?? delivery.endpointId) === delivery.endpointId,
    );
    // Of several deliveries to one endpoint the newest counts.
    const chosen = [...new Map(had.map((delivery) => [delivery.endpointId, delivery])).values()];
    const settled = chosen.filter(({ state }) => state !== 'pending');
    const deliveryIds = settled.map(({ id }) => publicDeliveryId(id));
    const replay = await startReplay(
      { ...accounts, actor: apiActorOf(request) },
      wabaId,
      { deliveryIds, eventIds: [publicEventId(event.id)], endpointId },
      `API key ${keyId}`,
    ).catch((error: unknown) => {
      const isNothing = error instanceof RequestError && error.code === 'nothing_to_replay';
      throw isNothing ? new ApiError('nothing_to_replay', { message: reasonOf(chosen) }) : error;
    });
    reply.code(201).header('location', `/api/external/replays/${replay.replayId}`);
    return replayJson(replay);
  });
}

function reasonOf(chosen: readonly object[]): string {
  return chosen.length === 0
    ? 'No endpoint has had this event or takes such events now.'
    : 'The event is still being delivered; it is not sent again meanwhile.';
}
