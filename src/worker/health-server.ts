import { type InnerServer, startInnerServer } from '../platform/metrics/inner-server.ts';
import { answerScrape, type Scrape } from '../platform/metrics/metrics-answer.ts';

export type HealthServer = InnerServer;

/** Answers /healthz with 200, /readyz with 200 once `isReady`, else 503, and /metrics with a scrape. A port of -1 starts nothing. */
export async function startHealthServer(options: {
  host: string;
  port: number;
  isReady: () => boolean;
  /** Asked for once, if anything is started at all. */
  makeScrape: () => Scrape;
}): Promise<HealthServer> {
  if (options.port < 0) return { close: async () => {} };
  const scrape = options.makeScrape();
  return await startInnerServer(options, (request, response) => {
    if (request.url === '/metrics') {
      void answerScrape(response, scrape);
      return;
    }
    const known = request.url === '/healthz' || request.url === '/readyz';
    const status = !known ? 404 : request.url === '/readyz' && !options.isReady() ? 503 : 200;
    response.writeHead(status, { 'content-type': 'text/plain', 'cache-control': 'no-store' });
    response.end(status === 200 ? 'ok\n' : 'not ready\n');
  });
}
