import type { Database } from '../database/database.ts';
import {
  type Endpoint,
  findEndpointForOperator,
  insertEndpoint,
  listEndpoints,
  nextEndpointId,
  setEndpointMode,
} from '../database/webhook-endpoints.ts';
import { EVENT_TYPES, type EventType } from '../domain/event-type.ts';
import { endpointSecretPlace } from '../domain/secret-places.ts';
import { newWebhookSecret } from '../domain/webhook/webhook-signature.ts';
import { checkEndpointUrl, type EndpointUrlRules } from '../webhooks/endpoint-url.ts';
import type { ResolveHost } from '../webhooks/resolve-host.ts';
import { AccountError, invalidValue } from './account-error.ts';
import { checkDescription, checkRowId, shown } from './account-input.ts';
import type { AccountTools } from './account-tools.ts';
import { knownWaba } from './known-accounts.ts';

/** The rules by which the sender judges URLs too, so that what is accepted here is what is sent to. */
export type UrlRules = EndpointUrlRules & { resolve: ResolveHost };

type NewEndpoint = { url: string; description: string; eventTypes: EventType[] | null };

/** `secret` is what the tenant verifies signatures with. */
export type CreatedEndpoint = NewEndpoint & { id: string; secret: string; wabaId: string; mode: 'open' };

/**
 * Adds a webhook endpoint with a signing secret of its own. `eventTypes` null means every type, also those to come.
 * Throws AccountError: `invalid_value`, `unknown_waba`, or the code of the refused URL.
 */
export async function addEndpoint(
  tools: AccountTools & { urlRules: UrlRules },
  wabaId: string,
  { url, description, eventTypes }: Omit<NewEndpoint, 'eventTypes'> & { eventTypes: string[] | null },
): Promise<CreatedEndpoint> {
  await knownWaba(tools.database, wabaId);
  const verdict = await checkEndpointUrl(url, tools.urlRules);
  if (!verdict.ok) throw new AccountError(verdict.code, verdict.message);
  return await storeEndpoint(tools, wabaId, {
    url: verdict.url,
    description: checkDescription('The description', description),
    eventTypes: eventTypes === null ? null : checkEventTypes(eventTypes),
  });
}

/** Adds an endpoint whose URL has been judged. */
export async function storeEndpoint(
  { database, secretBox }: AccountTools,
  wabaId: string,
  endpoint: NewEndpoint,
): Promise<CreatedEndpoint> {
  const id = await nextEndpointId(database);
  const secret = newWebhookSecret();
  const secretSealed = secretBox.seal(secret, endpointSecretPlace(id));
  await insertEndpoint(database, wabaId, { id, ...endpoint, secretSealed });
  return { id, secret, wabaId, ...endpoint, mode: 'open' };
}

/** The endpoints of a WABA. Throws AccountError: `invalid_value`, `unknown_waba`. */
export async function endpointsOf({ database }: { database: Database }, wabaId: string): Promise<Endpoint[]> {
  await knownWaba(database, wabaId);
  return await listEndpoints(database, wabaId);
}

/** For operators, who address endpoints of every WABA. Throws AccountError: `invalid_value`, `unknown_endpoint`. */
export async function endpointForOperator(
  { database }: { database: Database },
  endpointId: string,
): Promise<Endpoint> {
  const endpoint = await findEndpointForOperator(database, checkRowId('The id of the endpoint', endpointId));
  if (endpoint === null) throw unknownEndpoint(endpointId);
  return endpoint;
}

/**
 * Lets an endpoint's deliveries go out (`open`) or wait (`paused`); nothing is lost by pausing.
 * Throws AccountError: `invalid_value`, `unknown_endpoint`.
 */
export async function switchEndpoint(
  { database }: { database: Database },
  wabaId: string,
  change: { id: string; mode: 'open' | 'paused'; reason: string | null },
): Promise<void> {
  checkRowId('The id of the endpoint', change.id);
  const found = await setEndpointMode(database, wabaId, { ...change, version: null });
  if (!found) throw unknownEndpoint(change.id);
}

/** Throws AccountError `invalid_value` when a name is no event type or there is none. */
function checkEventTypes(names: readonly string[]): EventType[] {
  const types = [...new Set(names)].map((name) => {
    const type = EVENT_TYPES.find((known) => known === name);
    if (type === undefined) {
      throw invalidValue(`There is no event type ${shown(name)}; known are ${EVENT_TYPES.join(', ')}.`);
    }
    return type;
  });
  if (types.length === 0) throw invalidValue(`Name at least one event type of ${EVENT_TYPES.join(', ')}.`);
  return types;
}

function unknownEndpoint(endpointId: string): AccountError {
  return new AccountError('unknown_endpoint', `There is no webhook endpoint ${endpointId}.`);
}
