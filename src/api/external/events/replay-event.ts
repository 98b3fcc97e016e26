import { Type } from 'typebox';
import { AccountError } from '../../../accounts/account-error.ts';
import { startReplay } from '../../../accounts/replays.ts';
import { newestDeliveries } from '../../../deliveries/log/event-deliveries.ts';
import { publicDeliveryId, publicEventId } from '../../../domain/public-ids.ts';
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

/** POST /api/external/events/:id/replay: sends one event to the endpoints that had it or take it now, or to one of them. */
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
    const deliveryIds = chosen.filter(({ isOpen }) => !isOpen).map(({ id }) => publicDeliveryId(id));
    const replay = await startReplay(
      { ...accounts, actor: apiActorOf(request) },
      wabaId,
      { deliveryIds, eventIds: [publicEventId(event.id)], endpointId },
      `API key ${keyId}`,
    ).catch((error: unknown) => {
      const isNothing = error instanceof AccountError && error.code === 'nothing_to_replay';
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
