import { findEvent, readEventBodies } from '../../deliveries/event-bodies.ts';
import { listDeliveryAttempts, listEventDeliveries } from '../../deliveries/log/event-deliveries.ts';
import type { ListedEvent } from '../../deliveries/log/event-list.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { eventUuidOf } from '../../platform/public-ids.ts';
import { notFound } from '../errors/api-error.ts';
import type { ExternalApp, ExternalContext } from '../external/external-app.ts';
import { sendJsonText } from '../external/json-text.ts';
import { NoQuery } from '../external/schema-kit.ts';
import { accountOf } from '../keys/api-key-auth.ts';
import { SCOPES } from '../keys/key-scopes.ts';
import { documented } from '../openapi/documented.ts';
import { deliveryOf, eventJson } from './event-json.ts';
import { EventDetails, EventParams } from './event-schemas.ts';

/** The newest of each are shown: an event can be replayed often, and a dead endpoint probed for days. */
const MAX_DELIVERIES = 50;
const MAX_ATTEMPTS_EACH = 25;

/** GET /api/external/events/:id: one event with its deliveries and their attempts. */
export function getEvent(app: ExternalApp, { database }: ExternalContext): void {
  const schema = {
    ...documented({
      operationId: 'getEvent',
      summary: 'Get an event',
      description:
        'With its newest 50 deliveries and their newest 25 attempts each. Signatures and the values of your own headers are left out.',
      tag: 'Events',
      answers: { 200: { description: 'The event.' } },
    }),
    params: EventParams,
    querystring: NoQuery,
    response: { 200: EventDetails },
  };
  app.get('/api/external/events/:id', { schema, config: SCOPES.readWebhooks }, async (request, reply) => {
    const { wabaId } = accountOf(request);
    const event = await eventOfPath(database, wabaId, request.params.id);
    const deliveries = await listEventDeliveries(database, wabaId, event, MAX_DELIVERIES);
    const ids = deliveries.map(({ id }) => id);
    const [attempts, bodies] = await Promise.all([
      listDeliveryAttempts(database, wabaId, ids, MAX_ATTEMPTS_EACH),
      readEventBodies(database, wabaId, [event]),
    ]);
    const byDelivery = Map.groupBy(attempts, ({ deliveryId }) => deliveryId);
    const shown = deliveries.map((delivery) => deliveryOf(delivery, byDelivery.get(delivery.id) ?? []));
    return sendJsonText(reply, eventJson(event, bodies.get(event.id), { deliveries: shown }));
  });
}

/** The event that a path names. Throws ApiError 404, also for another WABA's. */
export async function eventOfPath(database: Database, wabaId: string, id: string): Promise<ListedEvent> {
  const uuid = eventUuidOf(id);
  const event = uuid === null ? null : await findEvent(database, wabaId, uuid);
  if (event === null) throw notFound();
  return event;
}
