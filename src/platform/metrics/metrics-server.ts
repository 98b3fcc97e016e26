import { type InnerServer, startInnerServer } from './inner-server.ts';
import { answerScrape, type Scrape } from './metrics-answer.ts';

export type MetricsServer = InnerServer;

/** Answers GET /metrics on a port of its own, which is not for the public. A port of -1 starts nothing. */
export async function startMetricsServer(options: {
  host: string;
  port: number;
  /** Asked for once, if anything is started at all. */
  makeScrape: () => Scrape;
}): Promise<MetricsServer> {
  if (options.port < 0) return { close: async () => {} };
  const scrape = options.makeScrape();
  return await startInnerServer(options, (request, response) => {
    if (request.url === '/metrics') void answerScrape(response, scrape);
    else response.writeHead(404, { 'content-type': 'text/plain' }).end('not found\n');
  });
}
