import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { countedAddress } from '../../platform/http/counted-address.ts';
import { ApiError, unavailable } from '../errors/api-error.ts';
import { createSharedCapacity, type Holding, type SharedCapacity } from './shared-capacity.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The handler reads the body and sees to it that it comes. */
    readsBody?: boolean;
    /** Forms with files may be larger than other bodies of the route. */
    fileBytes?: number;
  }
  interface FastifyRequest {
    /** As much of it as has come; 0 where nothing watches over bodies. */
    bodyBytes: number;
  }
}

export type BodyLimits = {
  /** Of all bodies that are being read. When they are more, the oldest is cut; no newer one is refused. */
  maxBytes: number;
  /** Whose bodies take more than this are the first to be cut. */
  maxBytesPerOwner: number;
  /**
   * A body counts until its request is answered, as what was made of it is held. It cannot be cut any more then, so an
   * owner whose bodies wait with their whole share has no further ones read. Left out: until its last byte.
   */
  untilAnswered?: boolean;
};

/** Of a request that is being read, besides its body. */
const REQUEST_BYTES = 32 * 1024;

const CHECK_EVERY_MS = 500;

type Body = { beganAt: number; sizeBytes: number; cut: (error: ApiError) => void };

/** Watches over the bodies that this scope reads: together they have a limit, and each has a lowest rate. */
export function guardBodies(
  scope: FastifyInstance,
  { maxBytes, maxBytesPerOwner, untilAnswered = false }: BodyLimits,
): void {
  const memory = createSharedCapacity({ capacity: () => maxBytes, ownerShare: maxBytesPerOwner });
  const bodies = new Set<Body>();
  const timer = setInterval(() => cutSlowBodies(bodies), CHECK_EVERY_MS).unref();
  scope.addHook('onClose', async () => clearInterval(timer));
  scope.decorateRequest('bodyBytes', 0);
  // Nothing may come between this hook and the parser: from here on the body flows.
  scope.addHook('preParsing', (request, reply, _payload, done) => {
    if (hasBody(request) && request.routeOptions.config.readsBody !== true) {
      watch(request, reply, { memory, bodies, untilAnswered });
    }
    done();
  });
}

function hasBody({ headers }: FastifyRequest): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';
}

type Guard = { memory: SharedCapacity; bodies: Set<Body>; untilAnswered: boolean };

function watch(request: FastifyRequest, reply: FastifyReply, { memory, bodies, untilAnswered }: Guard): void {
  const { raw, routeOptions } = request;
  const mostBytes = Math.max(routeOptions.bodyLimit, routeOptions.config.fileBytes ?? 0);
  const end = (): void => {
    raw.off('data', onData).off('end', onEnd);
    bodies.delete(body);
    held.end();
  };
  const onEnd = (): void => {
    if (untilAnswered) held.settle(Math.min(body.sizeBytes, mostBytes));
    else held.end();
    bodies.delete(body);
  };
  const onData = (chunk: Buffer): void => {
    body.sizeBytes += chunk.length;
    request.bodyBytes = body.sizeBytes;
    // The reader keeps no more than that.
    if (body.sizeBytes <= mostBytes) held.grow(chunk.length);
  };
  const cut = (error: ApiError): void => {
    end();
    // For the reader. Destroying the request would end the connection before the response.
    raw.emit('error', error);
  };
  const body: Body = { beganAt: performance.now(), sizeBytes: 0, cut };
  const held = memory.hold(ownerOf(request), () => cut(noRoom()));
  bodies.add(body);
  // A parser that does not read has no listener.
  raw.on('error', () => {});
  raw.on('data', onData).once('end', onEnd);
  reply.raw.once('close', end);
  held.grow(REQUEST_BYTES);
}

/** Whose key came with it, where that is known; a tenant has many addresses, and an address may have many tenants. */
function ownerOf({ account, ip }: FastifyRequest): string {
  return account?.tenantId ?? countedAddress(ip);
}

function cutSlowBodies(bodies: ReadonlySet<Body>): void {
  const now = performance.now();
  for (const body of bodies) {
    const ageMs = now - body.beganAt;
    // They are in the order in which they began.
    if (ageMs < mayTakeMs(0)) return;
    if (ageMs > mayTakeMs(body.sizeBytes)) body.cut(tooSlow());
  }
}

function noRoom(): ApiError {
  return unavailable(new Error('the memory for bodies was needed for newer ones'));
}

/**
 * A body that has not ended after this time must have come at this rate on average. The upstream platform itself gives
 * up after 5 seconds.
 */
const GRACE_MS = 5_000;
const MIN_BYTES_PER_SECOND = 32 * 1024;

/** How long what has come of a body may have taken. */
export function mayTakeMs(sizeBytes: number): number {
  return Math.max(GRACE_MS, (sizeBytes * 1_000) / MIN_BYTES_PER_SECOND);
}

export function tooSlow(): ApiError {
  return new ApiError('request_timeout', { message: 'The body came too slowly.' });
}

const MAX_CONNECTIONS = 4_000;

type Connection = { socket: Socket; requests: number; waiting: Holding | null };

/**
 * Connections on which nothing is asked yet, or nothing any more, make room for new ones: those that have waited
 * longest go first, first of all those of an address with more than a quarter of them.
 */
export function limitConnections({ server }: FastifyInstance, maxConnections = MAX_CONNECTIONS): void {
  const connections = new Map<string, Connection>();
  let busy = 0;
  const places = createSharedCapacity({
    capacity: () => Math.max(maxConnections - busy, maxConnections / 4),
    ownerShare: maxConnections / 4,
  });
  // The last resort of the operating system's limits: how many may ask at a time is limited by what they ask for.
  server.maxConnections = 2 * maxConnections;

  const wait = (connection: Connection): void => {
    const { socket } = connection;
    connection.waiting = places.hold(countedAddress(socket.remoteAddress ?? ''), () => socket.destroy());
    connection.waiting.grow(1);
  };

  server.on('connection', (socket: Socket) => {
    const name = nameOf(socket);
    const connection: Connection = { socket, requests: 0, waiting: null };
    connections.set(name, connection);
    socket.once('close', () => {
      connection.waiting?.end();
      connections.delete(name);
    });
    wait(connection);
  });
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    const name = nameOf(socket);
    const connection = connections.get(name);
    if (connection === undefined) return;
    if (connection.requests === 0) {
      connection.waiting?.end();
      busy += 1;
    }
    connection.requests += 1;
    response.once('close', () => {
      connection.requests -= 1;
      if (connection.requests > 0) return;
      busy -= 1;
      if (connections.get(name) === connection) wait(connection);
    });
  });
}

/** With TLS the socket of a request is another object than that of its connection. */
function nameOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
