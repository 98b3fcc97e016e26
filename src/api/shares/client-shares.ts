import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { countedAddress } from '../../platform/http/counted-address.ts';
import { ApiError, unavailable } from '../errors/api-error.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The handler reads the body and sees to it that it comes. */
    readsBody?: boolean;
  }
}

export type BodyLimits = {
  /** Of all bodies that are being read. When they are more, the oldest is cut; no newer one is refused. */
  maxBytes: number;
  /** Whose bodies take more than this are the first to be cut. */
  maxBytesPerAddress: number;
};

/** Of a request that is being read, besides its body. */
const REQUEST_BYTES = 32 * 1024;

const CHECK_EVERY_MS = 500;

type Body = { beganAt: number; sizeBytes: number; cut: (error: ApiError) => void };

/** Watches over the bodies that this scope reads: together they have a limit, and each has a lowest rate. */
export function guardBodies(scope: FastifyInstance, { maxBytes, maxBytesPerAddress }: BodyLimits): void {
  const memory = createSharedCapacity({ capacity: () => maxBytes, ownerShare: maxBytesPerAddress });
  const bodies = new Set<Body>();
  const timer = setInterval(() => cutSlowBodies(bodies), CHECK_EVERY_MS).unref();
  scope.addHook('onClose', async () => clearInterval(timer));
  // Nothing may come between this hook and the parser: from here on the body flows.
  scope.addHook('preParsing', (request, reply, _payload, done) => {
    if (hasBody(request) && request.routeOptions.config.readsBody !== true) {
      watch(request, reply, { memory, bodies });
    }
    done();
  });
}

function hasBody({ headers }: FastifyRequest): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';
}

function watch(
  { raw, ip, routeOptions: { bodyLimit } }: FastifyRequest,
  reply: FastifyReply,
  { memory, bodies }: { memory: SharedCapacity; bodies: Set<Body> },
): void {
  const end = (): void => {
    raw.off('data', onData);
    bodies.delete(body);
    held.end();
  };
  const onData = (chunk: Buffer): void => {
    body.sizeBytes += chunk.length;
    // The reader keeps no more than that.
    if (body.sizeBytes <= bodyLimit) held.grow(chunk.length);
  };
  const cut = (error: ApiError): void => {
    end();
    // For the reader. Destroying the request would end the connection before the response.
    raw.emit('error', error);
  };
  const body: Body = { beganAt: performance.now(), sizeBytes: 0, cut };
  const held = memory.hold(countedAddress(ip), () => cut(noRoom()));
  bodies.add(body);
  // A parser that does not read has no listener of its own.
  raw.on('error', () => {});
  raw.on('data', onData).once('end', end);
  reply.raw.once('close', end);
  held.grow(REQUEST_BYTES);
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

/** Something that all clients share and that each of them can hold a part of: memory, connections. */
type SharedCapacity = {
  /** Begins to hold; `drop` is called when what is held is needed for others, and nothing is held any more then. */
  hold(owner: string, drop: () => void): Holding;
};

type Holding = {
  /** Takes more; makes room at the cost of others, or of this one if it is the first to go. */
  grow(amount: number): void;
  /** Releases everything; may be called again. */
  end(): void;
};

type Entry = { owner: Owner; amount: number; drop: () => void };
type Owner = { name: string; amount: number; entries: Set<Entry> };

/**
 * Newcomers are never refused: when there is no room, the oldest holding is dropped, first those of an owner with
 * more than `ownerShare`. So something held for a time t is lost only when the whole capacity is taken anew within t.
 */
export function createSharedCapacity(options: {
  capacity: () => number;
  ownerShare: number;
}): SharedCapacity {
  // Sets keep the order of insertion: the oldest is the first.
  const entries = new Set<Entry>();
  const owners = new Map<string, Owner>();
  const greedy = new Set<Owner>();
  let total = 0;

  const change = (entry: Entry, amount: number): void => {
    const { owner } = entry;
    entry.amount += amount;
    owner.amount += amount;
    total += amount;
    if (owner.amount > options.ownerShare) greedy.add(owner);
    else greedy.delete(owner);
  };

  const end = (entry: Entry): void => {
    if (!entries.delete(entry)) return;
    change(entry, -entry.amount);
    entry.owner.entries.delete(entry);
    if (entry.owner.entries.size === 0) owners.delete(entry.owner.name);
  };

  const makeRoom = (): void => {
    while (total > options.capacity()) {
      const [owner] = greedy;
      const [oldest] = owner === undefined ? entries : owner.entries;
      if (oldest === undefined) return;
      end(oldest);
      oldest.drop();
    }
  };

  return {
    hold(name, drop) {
      const owner = owners.get(name) ?? { name, amount: 0, entries: new Set<Entry>() };
      owners.set(name, owner);
      const entry = { owner, amount: 0, drop };
      owner.entries.add(entry);
      entries.add(entry);
      return {
        grow(amount) {
          if (!entries.has(entry)) return;
          change(entry, amount);
          makeRoom();
        },
        end: () => end(entry),
      };
    },
  };
}
