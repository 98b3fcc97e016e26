import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { countedAddress } from '../../platform/http/counted-address.ts';
import { createSharedCapacity, type Holding } from './shared-capacity.ts';

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
