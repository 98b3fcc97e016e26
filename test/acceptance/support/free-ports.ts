import { type AddressInfo, createServer } from 'node:net';

/** How many ports the embedded stack uses, one after the other. */
const PORTS = 11;

/** The first of a run of free ports, below those that the system hands out by itself. */
export async function freePortBase(): Promise<number> {
  for (let tries = 0; tries < 50; tries += 1) {
    const base = 10_000 + Math.floor(Math.random() * 20_000);
    const free = await Promise.all(Array.from({ length: PORTS }, (_, n) => isFree(base + n)));
    if (free.every((one) => one)) return base;
  }
  throw new Error('no run of free ports found');
}

/** One that the system hands out. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
