import { createServer } from 'node:http';
import { answerScrape, type Scrape } from './metrics-answer.ts';

export type MetricsServer = { close(): Promise<void> };

/** Answers GET /metrics on a port of its own, which is not for the public. A port of -1 starts nothing. */
export async function startMetricsServer(options: {
  host: string;
  port: number;
  /** Asked for once, if anything is started at all. */
  makeScrape: () => Scrape;
}): Promise<MetricsServer> {
  if (options.port < 0) return { close: async () => {} };
  const scrape = options.makeScrape();
  const server = createServer((request, response) => {
    if (request.url === '/metrics') void answerScrape(response, scrape);
    else response.writeHead(404, { 'content-type': 'text/plain' }).end('not found\n');
  });
  server.requestTimeout = 5_000;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, resolve);
  });
  return { close: () => new Promise((resolve) => server.close(() => resolve())) };
}
