/** The tenants' servers: note every webhook that comes and answer it. A process of its own, driven by bench/main.ts. */

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { answerParent } from './child-process.ts';
import { nowMs } from './clock.ts';
import type { Arrival } from './run-plan.ts';

/** Whether a webhook is taken, and after how long the answer comes. */
export type Manner = 'takes' | 'takes a second' | 'takes 1 to 2 s' | 'refuses the first' | 'refuses 60 %';

export type ReceiverProtocol = {
  /** Opens a server of each manner, on 127.0.0.1 unless told; gives their ports. */
  listen: { argument: { host?: string; manners: Manner[] }; result: number[] };
  reset: { argument: null; result: null };
  /** How many different webhooks each server took since the reset. */
  progress: { argument: null; result: number[] };
  arrivals: { argument: null; result: Arrival[] };
  /** How many webhooks each server had open at a time, at the most since the reset. */
  mostAtOnce: { argument: null; result: number[] };
};

/** What is noted while it counts; headers and body are looked at afterwards. */
type Noted = { endpoint: number; headers: string[]; body: Buffer | null } & Pick<
  Arrival,
  'arrivedMs' | 'accepted'
>;

let noted: Noted[] = [];
/** The ids of what each server took. */
let taken: Set<string>[] = [];
let open: { now: number; most: number }[] = [];

answerParent<ReceiverProtocol>({
  listen: ({ host = '127.0.0.1', manners }) => {
    taken = manners.map(() => new Set());
    open = manners.map(() => ({ now: 0, most: 0 }));
    return Promise.all(manners.map((manner, endpoint) => listen(host, { endpoint, manner })));
  },
  reset: () => {
    noted = [];
    for (const ids of taken) ids.clear();
    for (const one of open) one.most = one.now;
    return null;
  },
  progress: () => taken.map((ids) => ids.size),
  arrivals: () => noted.map(arrivalOf),
  mostAtOnce: () => open.map(({ most }) => most),
});

async function listen(host: string, { endpoint, manner }: Server): Promise<number> {
  const server = createServer((request, response) => take({ endpoint, manner }, request, response));
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen(0, host, 1_024, resolve));
  return (server.address() as AddressInfo).port;
}

type Server = { endpoint: number; manner: Manner };

/** Below 2 s as the sender sees it: an endpoint that takes longer counts as slow and gets 10 at a time. */
const SPREAD_MS = 900;

function take({ endpoint, manner }: Server, request: IncomingMessage, response: ServerResponse): void {
  countOpen(endpoint, response);
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
    else if (manner === 'takes 1 to 2 s') setTimeout(answer, 1_000 + SPREAD_MS * Math.random());
    else answer();
  });
}

function countOpen(endpoint: number, response: ServerResponse): void {
  const counts = open[endpoint];
  if (counts === undefined) return;
  counts.now += 1;
  counts.most = Math.max(counts.most, counts.now);
  response.once('close', () => {
    counts.now -= 1;
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
