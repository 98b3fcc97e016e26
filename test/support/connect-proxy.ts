import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';

/** A small egress proxy that speaks CONNECT; `answer` decides about each target before a connection is made. */
export async function startConnectProxy(
  options: {
    credentials?: string;
    answer?: (authority: string) => string | 'hang' | null;
    port?: number;
  } = {},
) {
  const sockets = new Set<Socket>();
  const asked: string[] = [];
  const server = createServer((_request: IncomingMessage, response: ServerResponse) => {
    response.writeHead(400).end();
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
  });
  server.on('connect', (request: IncomingMessage, client: Socket, head: Buffer) => {
    const authority = request.url ?? '';
    if (
      options.credentials !== undefined &&
      request.headers['proxy-authorization'] !== basic(options.credentials)
    )
      return client.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n');
    // What a look of the gateway asks for: a good proxy refuses it.
    if (authority === '127.0.0.1:9') return client.end('HTTP/1.1 403 Forbidden\r\n\r\n');
    asked.push(authority);
    const answer = options.answer?.(authority) ?? null;
    if (answer === 'hang') return undefined;
    if (answer !== null) return client.end(answer);
    const at = authority.lastIndexOf(':');
    const host = authority.slice(0, at).replace(/^\[|\]$/g, '');
    const upstream = connect(Number(authority.slice(at + 1)), host);
    sockets.add(upstream);
    upstream.on('close', () => sockets.delete(upstream));
    let isOpen = false;
    upstream.on('error', () => (isOpen ? client.destroy() : client.end('HTTP/1.1 502 Bad Gateway\r\n\r\n')));
    upstream.on('connect', () => {
      isOpen = true;
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      upstream.write(head);
      upstream.pipe(client).pipe(upstream);
    });
    return undefined;
  });
  await new Promise<void>((resolve) => server.listen(options.port ?? 0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    asked,
    /** Ends every connection at once, as a crash does. */
    stop: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

function basic(credentials: string): string {
  return `Basic ${Buffer.from(credentials).toString('base64')}`;
}
