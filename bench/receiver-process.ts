/** The tenants' servers: note every webhook that comes and answer it. A process of its own, driven by bench/main.ts. */

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { answerParent } from './child-process.ts';
import { nowMs } from './clock.ts';
import type { Arrival } from './run-plan.ts';

/** Whether a webhook is taken, and after how long the answer comes. */
export type Manner = 'takes' | 'takes a second' | 'refuses the first' | 'refuses 60 %';

export type ReceiverProtocol = {
  /** Opens a server of each manner; gives their ports. */
  listen: { argument: Manner[]; result: number[] };
  reset: { argument: null; result: null };
  /** How many different webhooks each server took since the reset. */
  progress: { argument: null; result: number[] };
  arrivals: { argument: null; result: Arrival[] };
};

/** What is noted while it counts; headers and body are looked at afterwards. */
type Noted = { endpoint: number; headers: string[]; body: Buffer | null } & Pick<
  Arrival,
  'arrivedMs' | 'accepted'
>;

let noted: Noted[] = [];
/** The ids of what each server took. */
let taken: Set<string>[] = [];

answerParent<ReceiverProtocol>({
  listen: (manners) => {
    taken = manners.map(() => new Set());
    return Promise.all(manners.map((manner, endpoint) => listen(endpoint, manner)));
  },
  reset: () => {
    noted = [];
    for (const ids of taken) ids.clear();
    return null;
  },
  progress: () => taken.map((ids) => ids.size),
  arrivals: () => noted.map(arrivalOf),
});

async function listen(endpoint: number, manner: Manner): Promise<number> {
  const server = createServer((request, response) => take({ endpoint, manner }, request, response));
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', 1_024, resolve));
  return (server.address() as AddressInfo).port;
}

type Server = { endpoint: number; manner: Manner };

function take({ endpoint, manner }: Server, request: IncomingMessage, response: ServerResponse): void {
  let body: Buffer | null = null;
  request.on('data', (chunk: Buffer) => {
    body = body === null ? chunk : Buffer.concat([body, chunk]);
  });
  request.on('end', () => {
    const accepted = accepts(manner, request.headers['x-service-attempt']);
    noted.push({ endpoint, headers: request.rawHeaders, body, arrivedMs: nowMs(), accepted });
    if (accepted) taken[endpoint]?.add(String(request.headers['webhook-id']));
    const answer = () => response.writeHead(accepted ? 200 : 500, { 'content-length': '0' }).end();
    if (manner === 'takes a second') setTimeout(answer, 1_000);
    else answer();
  });
}

function accepts(manner: Manner, attempt: unknown): boolean {
  if (manner === 'refuses the first') return attempt !== '1';
  return manner !== 'refuses 60 %' || Math.random() >= 0.6;
}

function arrivalOf({ endpoint, headers, body, arrivedMs, accepted }: Noted): Arrival {
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
    accepted,
  };
}

function statusIn(body: Buffer): string {
  return /"status":"([a-z]+)"/.exec(body.toString())?.[1] ?? '';
}
