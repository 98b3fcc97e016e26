import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** A way to PostgreSQL that can be cut, or made to swallow everything. */
export type PostgresProxy = {
  url: string;
  cut(): void;
  hang(): void;
  mend(): void;
  /** As a firewall that forgot the present connections: they swallow everything for good, new ones go through. */
  strand(): void;
  /** As a process that froze once it had asked: nothing more is read of what the server sends. */
  freeze(): void;
  /** As a server that shuts down in the moment in which it has let a client in: both words in one packet. */
  endWhenReady(): void;
  /** How often a client has written, and with it waited for a response. */
  writes(): number;
};

/** ReadyForQuery, outside of a transaction. */
const READY = Buffer.from('Z\0\0\0\x05I', 'latin1');

const TERMINATED = errorResponse({
  S: 'FATAL',
  V: 'FATAL',
  C: '57P01',
  M: 'terminating connection due to administrator command',
});

function errorResponse(fields: Record<string, string>): Buffer {
  const body = `${Object.entries(fields)
    .map(([code, text]) => `${code}${text}\0`)
    .join('')}\0`;
  const head = Buffer.from('E\0\0\0\0', 'latin1');
  head.writeInt32BE(4 + Buffer.byteLength(body), 1);
  return Buffer.concat([head, Buffer.from(body)]);
}

export async function startPostgresProxy(databaseUrl: string): Promise<PostgresProxy> {
  const target = new URL(databaseUrl);
  let state: 'through' | 'cut' | 'hanging' | 'ending' = 'through';
  const sockets = new Set<Socket>();
  const upstreams = new Set<Socket>();
  const stranded = new WeakSet<Socket>();
  let writes = 0;
  const server = createServer((client) => {
    if (state === 'cut') {
      client.destroy();
      return;
    }
    const upstream = connect(Number(target.port), target.hostname);
    upstreams.add(upstream);
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from);
      from.on('data', (chunk) => {
        if (from === client) writes += 1;
        if (state === 'ending' && from === upstream && chunk.subarray(-READY.length).equals(READY))
          client.end(Buffer.concat([chunk, TERMINATED]));
        else if ((state === 'through' || state === 'ending') && !stranded.has(from)) to.write(chunk);
      });
      from.on('error', () => {});
      from.on('close', () => to.destroy());
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const cutAll = () => {
    for (const socket of sockets) socket.destroy();
    sockets.clear();
  };
  onTestFinished(() => {
    cutAll();
    server.close();
  });
  const url = new URL(databaseUrl);
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: url.href,
    cut: () => {
      state = 'cut';
      cutAll();
    },
    hang: () => {
      state = 'hanging';
    },
    mend: () => {
      state = 'through';
    },
    strand: () => {
      for (const socket of sockets) stranded.add(socket);
    },
    freeze: () => {
      for (const upstream of upstreams) upstream.pause();
    },
    endWhenReady: () => {
      state = 'ending';
    },
    writes: () => writes,
  };
}
