/** The tenants' servers: take every webhook, answer 200 and note what came. A process of its own, driven by bench/main.ts. */

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { answerParent } from './child-process.ts';
import { nowMs } from './clock.ts';
import type { Arrival } from './run-plan.ts';

export type ReceiverProtocol = {
  /** Opens so many servers; gives their ports. */
  listen: { argument: number; result: number[] };
  reset: { argument: null; result: null };
  /** How many different webhooks came since the reset, and how many in all. */
  progress: { argument: null; result: { distinct: number; all: number } };
  arrivals: { argument: null; result: Arrival[] };
};

/** What is noted while it counts; headers and body are looked at afterwards. */
type Noted = { endpoint: number; headers: string[]; body: Buffer | null; arrivedMs: number };

let noted: Noted[] = [];
let distinct = new Set<string>();

answerParent<ReceiverProtocol>({
  listen: (count) => Promise.all(Array.from({ length: count }, (_, endpoint) => listen(endpoint))),
  reset: () => {
    noted = [];
    distinct = new Set();
    return null;
  },
  progress: () => ({ distinct: distinct.size, all: noted.length }),
  arrivals: () => noted.map(arrivalOf),
});

async function listen(endpoint: number): Promise<number> {
  const server = createServer((request, response) => take(endpoint, request, response));
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', 1_024, resolve));
  return (server.address() as AddressInfo).port;
}

function take(endpoint: number, request: IncomingMessage, response: ServerResponse): void {
  let body: Buffer | null = null;
  request.on('data', (chunk: Buffer) => {
    body = body === null ? chunk : Buffer.concat([body, chunk]);
  });
  request.on('end', () => {
    noted.push({ endpoint, headers: request.rawHeaders, body, arrivedMs: nowMs() });
    distinct.add(`${endpoint} ${request.headers['webhook-id']}`);
    response.writeHead(200, { 'content-length': '0' }).end();
  });
}

function arrivalOf({ endpoint, headers, body, arrivedMs }: Noted): Arrival {
  const header = (name: string) => {
    const at = headers.findIndex((text, index) => index % 2 === 0 && text.toLowerCase() === name);
    return at < 0 ? '' : (headers[at + 1] ?? '');
  };
  const isStatus = header('x-service-event-type') === 'status';
  return {
    endpoint,
    webhookId: header('webhook-id'),
    eventId: decodeURIComponent(header('x-service-event-id')),
    status: isStatus && body !== null ? statusIn(body) : '',
    sequence: Number(header('x-service-sequence')),
    attempt: Number(header('x-service-attempt')),
    arrivedMs,
  };
}

function statusIn(body: Buffer): string {
  return /"status":"([a-z]+)"/.exec(body.toString())?.[1] ?? '';
}
