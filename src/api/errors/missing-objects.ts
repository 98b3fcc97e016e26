import type { FastifyRequest } from 'fastify';
import { shown } from '../../platform/request-input.ts';
import { ApiError } from './api-error.ts';
import { ERROR_CODES } from './error-codes.ts';

/** The objects of the API by the segment of the path before their id: what they are called, and what their id is. */
const OBJECTS: Readonly<Record<string, { name: string; id: string }>> = {
  messages: { name: 'message', id: 'the serviceMessageId, a whole number' },
  conversations: { name: 'conversation', id: 'a whole number, as in GET /api/external/conversations' },
  deliveries: { name: 'delivery', id: 'dlv_…, as in GET /api/external/events/{id}' },
  events: { name: 'event', id: 'the webhook-id, evt_…' },
  payments: { name: 'payment', id: 'the reference id that you gave it' },
  media: { name: 'file', id: 'med_…, from the response to its upload' },
  'webhook-endpoints': {
    name: 'webhook endpoint',
    id: 'a whole number, as in GET /api/external/webhook-endpoints',
  },
  replays: { name: 'replay', id: 'a whole number, as in GET /api/external/replays' },
  broadcasts: { name: 'broadcast', id: 'a whole number, as in GET /api/external/broadcasts' },
  erasures: { name: 'erasure', id: 'a whole number, as in the response to its request' },
};

/**
 * The same 404 with the object that the path of the request names. It says what the client wrote and what an id looks
 * like, never what exists.
 */
export function namingTheObject(error: ApiError, request: FastifyRequest): ApiError {
  if (error.code !== 'not_found' || error.param !== null) return error;
  // The route said more than that the object is missing.
  if (error.message !== ERROR_CODES.not_found.message) return error;
  const [, segment = '', param = ''] = /\/([^/]+)\/:(\w+)/.exec(request.routeOptions.url ?? '') ?? [];
  const object = OBJECTS[segment];
  const given = (request.params as Readonly<Record<string, unknown>> | null)?.[param];
  if (object === undefined || typeof given !== 'string') return error;
  const message = `There is no ${object.name} ${shown(given)}. Its id is ${object.id}.`;
  return new ApiError('not_found', { message, cause: error });
}
