import { createHmac } from 'node:crypto';
import { Agent, request } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { contentOf } from '../drill/webhook-content.ts';
import {
  bodyOf,
  type ExpectedEvent,
  imageMessage,
  messageStatus,
  textMessage,
  type UpstreamAccount,
  type UpstreamItem,
} from '../support/load/upstream-bodies.ts';
import { APP_SECRET, PUBLIC_HOST } from './installation.ts';
import type { Arrival } from './peer.ts';

/** One answer to upstream, or none (status 0: the connection was refused or broken). */
type Answer = { phase: string; status: number; ms: number };

export type Pump = {
  answers: Answer[];
  /** Events of bodies that were answered 200, in the order in which upstream had them. */
  acknowledged: ExpectedEvent[];
  phase: (name: string) => void;
  /** Sends nothing new and waits until everything was answered 200. */
  stop(): Promise<void>;
};

/** Longer than the proxy has a request wait. */
const TIMEOUT_MS = 40_000;
const LADDER = ['sent', 'delivered', 'read'];

/**
 * Sends signed bodies over https through the proxy until stopped, `senders` at a time. What is not answered 200 is sent
 * again, as upstream does; of what belongs together the next part is sent when the one before was answered.
 */
export function startPump(options: {
  port: number;
  ca: string;
  account: UpstreamAccount;
  senders: number;
  pauseMs: number;
  /** The first id, of pumps after the first. */
  from?: number;
}): Pump {
  const agent = new Agent({ keepAlive: true, ca: options.ca, servername: PUBLIC_HOST });
  const answers: Answer[] = [];
  const acknowledged: ExpectedEvent[] = [];
  let phase = 'start';
  let stopped = false;
  let ids = options.from ?? 0;

  const send = async (item: UpstreamItem) => {
    const body = bodyOf(options.account, [item]);
    for (;;) {
      const begunMs = performance.now();
      const begunIn = phase;
      const status = await post(agent, options.port, body);
      answers.push({ phase: begunIn, status, ms: performance.now() - begunMs });
      if (status === 200) break;
      await sleep(300);
    }
    acknowledged.push(...item.events);
  };
  const conversation = async () => {
    ids += 1;
    const id = `wamid.stack-${ids}`;
    const isImage = ids % 10 === 0;
    const items = [
      isImage ? imageMessage(id, String(600_000_000_000 + ids)) : textMessage(id, 'Hello'),
      ...LADDER.map((status) => messageStatus(`${id}-out`, status)),
    ];
    for (const item of items) {
      await send(item);
      await sleep(options.pauseMs);
    }
  };
  const running = Array.from({ length: options.senders }, async () => {
    while (!stopped) await conversation();
  });
  return {
    answers,
    acknowledged,
    phase: (name) => {
      phase = name;
    },
    stop: async () => {
      stopped = true;
      await Promise.all(running);
      agent.destroy();
    },
  };
}

function post(agent: Agent, port: number, body: Buffer): Promise<number> {
  const signature = createHmac('sha256', APP_SECRET).update(body).digest('hex');
  return new Promise((resolve) => {
    const sent = request(
      {
        agent,
        host: '127.0.0.1',
        port,
        method: 'POST',
        path: '/upstream/webhook',
        headers: {
          host: PUBLIC_HOST,
          'content-type': 'application/json',
          'content-length': body.length,
          'x-hub-signature-256': `sha256=${signature}`,
        },
        signal: AbortSignal.timeout(TIMEOUT_MS),
      },
      (response) => {
        response.resume();
        response.once('end', () => resolve(response.complete ? (response.statusCode ?? 0) : 0));
        response.once('error', () => resolve(0));
      },
    );
    sent.once('error', () => resolve(0));
    sent.end(body);
  });
}

export type Losses = { lost: string[]; disordered: string[]; duplicates: number };

/** What of the acknowledged events did not arrive, or arrived before one of its key that came earlier. */
export function lossesIn(acknowledged: readonly ExpectedEvent[], arrivals: readonly Arrival[]): Losses {
  const first = new Map<string, number>();
  let duplicates = 0;
  for (const [at, { body }] of arrivals.entries()) {
    const content = contentOf(Buffer.from(body));
    if (content === null) continue;
    if (first.has(content.identity)) duplicates += 1;
    else first.set(content.identity, at);
  }
  const lost: string[] = [];
  const disordered: string[] = [];
  const latest = new Map<string, number>();
  for (const { identity, key, eventType } of acknowledged) {
    const at = first.get(identity);
    if (at === undefined) lost.push(identity);
    // The file is fetched beside the rest: only its own message comes before it.
    else if (eventType !== 'media.ready' && at < (latest.get(key) ?? -1)) disordered.push(identity);
    else latest.set(key, at);
  }
  return { lost, disordered, duplicates };
}
