import { createServer } from 'node:http';

export type HealthServer = { close(): Promise<void> };

/** Answers /healthz with 200 and /readyz with 200 once `isReady`, else 503. A port of -1 starts nothing. */
export async function startHealthServer(options: {
  host: string;
  port: number;
  isReady: () => boolean;
}): Promise<HealthServer> {
  if (options.port < 0) return { close: async () => {} };
  const server = createServer((request, response) => {
    const known = request.url === '/healthz' || request.url === '/readyz';
    const status = !known ? 404 : request.url === '/readyz' && !options.isReady() ? 503 : 200;
    response.writeHead(status, { 'content-type': 'text/plain', 'cache-control': 'no-store' });
    response.end(status === 200 ? 'ok\n' : 'not ready\n');
  });
  server.requestTimeout = 5_000;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, resolve);
  });
  return { close: () => new Promise((resolve) => server.close(() => resolve())) };
}
