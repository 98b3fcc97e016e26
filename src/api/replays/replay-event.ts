import { Type } from 'typebox';
import { newestDeliveries } from '../../deliveries/log/event-deliveries.ts';
import { publicDeliveryId, publicEventId } from '../../platform/public-ids.ts';
import { RequestError } from '../../platform/request-input.ts';
import { startReplay } from '../../replays/replays.ts';
import { EventParams } from '../deliveries/event-schemas.ts';
import { eventOfPath } from '../deliveries/get-event.ts';
import { ApiError } from '../errors/api-error.ts';
import type { ExternalApp, ExternalContext } from '../external/external-app.ts';
import { NoQuery } from '../external/schema-kit.ts';
import { accountOf, apiActorOf } from '../keys/api-key-auth.ts';
import { SCOPES } from '../keys/key-scopes.ts';
import { documented } from '../openapi/documented.ts';
import { Replay, replayJson } from './replay-schemas.ts';

const Target = Type.Object(
  { endpointId: Type.Optional(Type.String({ pattern: '^[1-9]\\d{0,17}$' })) },
  { additionalProperties: false },
);

const docs = documented({
  operationId: 'replayEvent',
  summary: 'Send an event again',
  description:
    'To every endpoint that had it or takes such events now, or to the one that the body names: also to one that is newer than the event.',
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
    ...docs,
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
    const had = await newestDeliveries(database, wabaId, event);
    const chosen = had.filter((delivery) => endpointId === undefined || delivery.endpointId === endpointId);
    const deliveryIds = chosen.filter(({ isOpen }) => !isOpen).map(({ id }) => publicDeliveryId(id));
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
