import type { ServerResponse } from 'node:http';
import type { Registry } from '@prometheus-io/client';

/** Makes the text of a scrape. */
export type Scrape = () => Promise<{ contentType: string; text: string }>;

/** A scrape of all that is in the registry; `refresh` brings up to date what is asked for only then. */
export function scrapeOf(registry: Registry, refresh: () => Promise<void> = async () => {}): Scrape {
  return async () => {
    await refresh();
    return { contentType: registry.contentType, text: await registry.metrics() };
  };
}

/** Answers a request for /metrics. */
export async function answerScrape(response: ServerResponse, scrape: Scrape): Promise<void> {
  try {
    const { contentType, text } = await scrape();
    response.writeHead(200, { 'content-type': contentType, 'cache-control': 'no-store' }).end(text);
  } catch {
    // A defect, for `refresh` must not reject; Prometheus then shows the process as down.
    response.writeHead(500, { 'content-type': 'text/plain' }).end('no metrics\n');
  }
}
