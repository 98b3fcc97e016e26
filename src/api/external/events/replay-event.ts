import { Type } from 'typebox';
import { startReplay } from '../../../accounts/replays.ts';
import { newestDeliveries } from '../../../database/event-deliveries.ts';
import { publicDeliveryId } from '../../../domain/public-ids.ts';
import { ApiError } from '../../errors/api-error.ts';
import { accountOf, apiActorOf } from '../../plugins/api-key-auth.ts';
import { SCOPES } from '../../plugins/key-scopes.ts';
import type { ExternalApp, ExternalContext } from '../external-app.ts';
import { NoQuery } from '../no-query.ts';
import { Replay, replayJson } from '../replays/replay-schemas.ts';
import { eventDocs } from './event-docs.ts';
import { eventOfPath } from './get-event.ts';

const Target = Type.Object(
  { endpointId: Type.Optional(Type.String({ pattern: '^[1-9]\\d{0,17}$' })) },
  { additionalProperties: false },
);

/** POST /api/external/events/:id/replay: sends one event again to the endpoints that had it, or to one of them. */
export function replayEvent(app: ExternalApp, { accounts }: ExternalContext): void {
  const schema = {
    ...eventDocs.replay,
    params: Type.Object({ id: Type.String() }),
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
    if (endpointId !== undefined && chosen.length === 0) {
      const message = 'The event was not delivered to such an endpoint.';
      throw new ApiError('unknown_endpoint', { param: 'endpointId', message });
    }
    const deliveryIds = chosen.filter(({ isOpen }) => !isOpen).map(({ id }) => publicDeliveryId(id));
    if (deliveryIds.length === 0) throw new ApiError('nothing_to_replay', { message: reasonOf(chosen) });
    const replay = await startReplay(
      { ...accounts, actor: apiActorOf(request) },
      wabaId,
      { deliveryIds },
      `API key ${keyId}`,
    );
    reply.code(201).header('location', `/api/external/replays/${replay.replayId}`);
    return replayJson(replay);
  });
}

function reasonOf(chosen: readonly object[]): string {
  return chosen.length === 0
    ? 'No endpoint that exists has had this event.'
    : 'The event is still being delivered; it is not sent again meanwhile.';
}
