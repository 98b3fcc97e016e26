import { createServer, type RequestListener } from 'node:http';

export type InnerServer = { close(): Promise<void> };

/** Serves what is for operators and their programs, on a port that is not for the public. */
export async function startInnerServer(
  { host, port }: { host: string; port: number },
  listener: RequestListener,
): Promise<InnerServer> {
  const server = createServer(listener);
  server.requestTimeout = 5_000;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  return { close: () => new Promise((resolve) => server.close(() => resolve())) };
}
