import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Every which response of a receiver gets lost on its way back. */
const LOST_EVERY = 15;

export type ForgetfulProxy = {
  url: string;
  /** How often each webhook came, by `webhook-id`. */
  arrivals: ReadonlyMap<string, number>;
  bodies: ReadonlyMap<string, string>;
  /** What the receiver answered with 2xx, whether the answer arrived or not. */
  confirmed: ReadonlySet<string>;
  close(): Promise<void>;
};

/** A network in front of a receiver that loses some of its responses, and keeps a record of what passed. */
export async function startForgetfulProxy(port: number): Promise<ForgetfulProxy> {
  const arrivals = new Map<string, number>();
  const bodies = new Map<string, string>();
  const confirmed = new Set<string>();
  const server = createServer(async (request, response) => {
    const body = await bodyOf(request);
    const id = String(request.headers['webhook-id']);
    arrivals.set(id, (arrivals.get(id) ?? 0) + 1);
    bodies.set(id, body.toString());
    const status = await forward(`http://127.0.0.1:${port}${request.url}`, request, body);
    if (status >= 200 && status < 300) confirmed.add(id);
    const isLost = status === 0 || (arrivals.size % LOST_EVERY === 0 && arrivals.get(id) === 1);
    finish(response, isLost ? 0 : status);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    arrivals,
    bodies,
    confirmed,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** What belongs to one connection, and is made for the next one. */
const OF_THE_CONNECTION = new Set([
  'connection',
  'content-length',
  'host',
  'transfer-encoding',
  'keep-alive',
]);

/** The status of the receiver; 0 without a response. */
async function forward(url: string, { headers }: IncomingMessage, body: Buffer): Promise<number> {
  const passed = Object.entries(headers).filter(([name]) => !OF_THE_CONNECTION.has(name));
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: Object.fromEntries(passed.map(([name, value]) => [name, String(value)])),
      body: new Uint8Array(body),
    });
    await response.arrayBuffer();
    return response.status;
  } catch {
    return 0;
  }
}

function finish(response: ServerResponse, status: number): void {
  if (status === 0) {
    response.destroy();
    return;
  }
  response.statusCode = status;
  response.end();
}
