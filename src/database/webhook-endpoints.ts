import type { EventType } from '../domain/event-type.ts';
import type { Database } from './database.ts';
import { execute, query } from './sql.ts';

export type Subscriber = {
  id: string;
  wabaId: string;
  eventTypes: EventType[] | null;
  phoneNumberIds: string[] | null;
  orderScope: OrderScope;
};

/** What shares a lane at an endpoint: events of one eventId, of one conversation, or all. */
export type OrderScope = 'event' | 'conversation' | 'endpoint';

/** Who receives the events of these WABAs, switched-off endpoints included: their events wait. */
export async function endpointsOfWabas(
  database: Database,
  wabaIds: readonly string[],
): Promise<Subscriber[]> {
  return await query<Subscriber>(
    database,
    `select id, waba_id as "wabaId", event_types as "eventTypes", phone_number_ids as "phoneNumberIds",
            order_scope as "orderScope" from webhook_endpoints
      where waba_id = any (?::text[]) order by id`,
    [wabaIds],
  );
}

export type Endpoint = {
  id: string;
  wabaId: string;
  url: string;
  description: string;
  eventTypes: EventType[] | null;
  mode: string;
  modeReason: string | null;
  createdAt: Date;
};

const ENDPOINT = `id, waba_id as "wabaId", url, description, event_types as "eventTypes", mode,
  mode_reason as "modeReason", created_at as "createdAt"`;

/** Draws the id of a new endpoint: the sealed secret is bound to it, so it is needed first. */
export async function nextEndpointId(database: Database): Promise<string> {
  const [row] = await query<{ id: string }>(
    database,
    `select nextval(pg_get_serial_sequence('webhook_endpoints', 'id')) as id`,
  );
  if (row === undefined) throw new Error('the sequence gave no endpoint id');
  return row.id;
}

export async function insertEndpoint(
  database: Database,
  wabaId: string,
  endpoint: {
    id: string;
    url: string;
    description: string;
    eventTypes: EventType[] | null;
    secretSealed: string;
  },
): Promise<void> {
  await execute(
    database,
    `insert into webhook_endpoints (id, waba_id, url, description, event_types, secret_sealed)
     values (:id, :wabaId, :url, :description, cast(:eventTypes as text[]), :secretSealed)`,
    { wabaId, ...endpoint },
  );
}

export async function listEndpoints(database: Database, wabaId: string): Promise<Endpoint[]> {
  return await query<Endpoint>(
    database,
    `select ${ENDPOINT} from webhook_endpoints where waba_id = ? order by id`,
    [wabaId],
  );
}

/** For operators, who address endpoints of every tenant. */
export async function findEndpointForOperator(database: Database, id: string): Promise<Endpoint | null> {
  const [row] = await query<Endpoint>(database, `select ${ENDPOINT} from webhook_endpoints where id = ?`, [
    id,
  ]);
  return row ?? null;
}

/** Sets an endpoint's mode, when it is still at `version`; returns whether it was. A null version means any. */
export async function setEndpointMode(
  database: Database,
  wabaId: string,
  change: { id: string; version: number | null; mode: 'open' | 'paused' | 'disabled'; reason: string | null },
): Promise<boolean> {
  const changed = await execute(
    database,
    `update webhook_endpoints
        set mode = :mode, mode_reason = :reason, version = version + 1, updated_at = now()
      where waba_id = :wabaId and id = :id and (cast(:version as integer) is null or version = cast(:version as integer))`,
    { wabaId, ...change },
  );
  return changed === 1;
}
