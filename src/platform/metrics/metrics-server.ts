import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Registry } from '@prometheus-io/client';
import { openedPort } from '../http/opened-port.ts';

export type MetricsServer = { close(): Promise<void> };

/** Serves GET /metrics, and what `others` responds to, on a port that is not for the public; -1 starts nothing. */
export async function startMetricsServer(options: {
  /** That of the port. */
  setting: string;
  host: string;
  port: number;
  makeScrape: () => Scrape;
  others?: RequestListener;
}): Promise<MetricsServer> {
  const { setting, host, port, others = notFound } = options;
  if (port < 0) return { close: async () => {} };
  const scrape = options.makeScrape();
  const server = createServer((request, response) => {
    if (request.url === '/metrics') void answerScrape(response, scrape);
    else others(request, response);
  });
  server.requestTimeout = 5_000;
  const listening = () =>
    new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, host, resolve);
    });
  await openedPort(setting, { host, port }, listening);
  return { close: () => new Promise((resolve) => server.close(() => resolve())) };
}

const notFound: RequestListener = (_request, response) =>
  void response.writeHead(404, { 'content-type': 'text/plain' }).end('not found\n');

export type Scrape = () => Promise<{ contentType: string; text: string }>;

/** A scrape of all that is in the registry; `refresh` brings up to date what is asked for only then. */
export function scrapeOf(registry: Registry, refresh: () => Promise<void> = async () => {}): Scrape {
  return async () => {
    await refresh();
    return { contentType: registry.contentType, text: await registry.metrics() };
  };
}

async function answerScrape(response: ServerResponse, scrape: Scrape): Promise<void> {
  try {
    const { contentType, text } = await scrape();
    response.writeHead(200, { 'content-type': contentType, 'cache-control': 'no-store' }).end(text);
  } catch {
    // A defect, for `refresh` must not reject; Prometheus then shows the process as down.
    response.writeHead(500, { 'content-type': 'text/plain' }).end('no metrics\n');
  }
}

/** Two scrapers, or one that asks often, cost one read in this time. */
const KEEP_MS = 5_000;

/**
 * What `read` found at most 5 s ago; null when it failed or takes longer than `waitMs`. One read at a time: while one
 * hangs, no other is begun.
 */
export function makeFiguresCache<Figures>(options: {
  read: () => Promise<Figures>;
  now: () => number;
  waitMs: number;
}): () => Promise<Figures | null> {
  let latest: { sinceMs: number; figures: Promise<Figures | null>; isRunning: boolean } | null = null;

  const begin = () => {
    const started = { sinceMs: options.now(), figures: options.read().catch(() => null), isRunning: true };
    void started.figures.then(() => {
      started.isRunning = false;
    });
    return started;
  };

  return async () => {
    const isFresh = latest !== null && (latest.isRunning || options.now() - latest.sinceMs < KEEP_MS);
    if (latest === null || !isFresh) latest = begin();
    return await Promise.race([latest.figures, sleep(options.waitMs, null, { ref: false })]);
  };
}
