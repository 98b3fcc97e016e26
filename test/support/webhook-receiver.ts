import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { inspect, isDeepStrictEqual } from 'node:util';
import { PATIENCE_MS } from './patience.ts';

export type ReceivedWebhook = {
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
  /** performance.now() at arrival and when the answer was sent (null: never answered). */
  arrivedMs: number;
  answeredMs: number | null;
  status: number | null;
};

/** Answers one webhook; returns the status it answered with, null when it did not answer. */
export type Behaviour = (
  webhook: ReceivedWebhook,
  response: ServerResponse,
) => number | null | Promise<number | null>;

export type WebhookReceiver = {
  url: string;
  received: ReceivedWebhook[];
  behave(behaviour: Behaviour): void;
  close(): Promise<void>;
};

export const answer =
  (status: number, headers: Record<string, string> = {}): Behaviour =>
  (_webhook, response) => {
    response.writeHead(status, headers).end('answered');
    return status;
  };

/** A tenant's server on a real port. */
export async function startReceiver(behaviour: Behaviour = answer(200)): Promise<WebhookReceiver> {
  let current = behaviour;
  const received: ReceivedWebhook[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const webhook: ReceivedWebhook = {
      path: request.url ?? '',
      headers: request.headers,
      body: Buffer.concat(chunks).toString(),
      arrivedMs: performance.now(),
      answeredMs: null,
      status: null,
    };
    received.push(webhook);
    webhook.status = await current(webhook, response);
    webhook.answeredMs = performance.now();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    behave: (next) => {
      current = next;
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/**
 * Waits until `look` returns something true, or what `is` says; fails with `what`, and with what it saw last, after
 * `withinMs`.
 */
export async function eventually<Seen>(
  what: string,
  look: () => Seen | Promise<Seen>,
  limits: number | { is: Seen; withinMs?: number } = PATIENCE_MS,
): Promise<void> {
  const { withinMs = PATIENCE_MS } = typeof limits === 'number' ? { withinMs: limits } : limits;
  const deadline = performance.now() + withinMs;
  for (;;) {
    const seen = await look();
    if (typeof limits === 'number' ? seen : isDeepStrictEqual(seen, limits.is)) return;
    if (performance.now() > deadline) {
      const wanted = typeof limits === 'number' ? String(look) : inspect(limits.is);
      throw new Error(`not within ${withinMs} ms: ${what}\nwanted: ${wanted}\nseen last: ${inspect(seen)}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
