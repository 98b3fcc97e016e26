import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { addEndpoints, queueEach } from '../../support/many-endpoints.ts';
import { seededDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { eventually } from '../../support/webhook-receiver.ts';
import { startWorkerProcess } from '../../support/worker-process.ts';

const WABA = '900000000000101';
const ENDPOINTS = 10_000;

/** On two cores of its own the worker takes 8 to 12 s; an engine whose claims grow with the endpoints, minutes. */
const BOUND_MS = 60_000;

/** Notes the paths that were asked, on all addresses of this machine. */
async function startCountingReceiver() {
  const paths = new Set<string>();
  const server = createServer((request, response) => {
    paths.add(`${request.headers.host}${request.url}`);
    request.resume();
    request.once('end', () => response.writeHead(204).end());
  });
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, paths };
}

test.each([
  ['one origin', (n: number, port: number) => `http://127.0.0.1:${port}/${n}`],
  ['an origin each', (n: number, port: number) => `http://127.7.${n >> 8}.${n & 255}:${port}/${n}`],
])(
  `${ENDPOINTS} endpoints with a rate limit and %s, each with something due, do not slow each other down`,
  async (_name, urlOf) => {
    const { database, url } = await seededDatabase();
    const receiver = await startCountingReceiver();
    const urls = Array.from({ length: ENDPOINTS }, (_, n) => urlOf(n, receiver.port));
    const ids = await addEndpoints(database, WABA, { urls, ratePerSecond: 100 });
    await queueEach(database, WABA, ids, (n) => `lane ${n}`);
    await database.raw('analyze');
    const worker = startWorkerProcess(testSettings(url, { HELIOGRAPH_DELIVERY_WORKFLOWS: 'auto' }));
    onTestFinished(() => worker.stop());
    await worker.ready();
    const startMs = performance.now();
    await eventually('all delivered', () => receiver.paths.size, { is: ENDPOINTS }).catch(() => undefined);
    const tookMs = performance.now() - startMs;
    const figures = `${receiver.paths.size} of ${ENDPOINTS} in ${Math.round(tookMs)} ms`;
    if (process.env.HELIOGRAPH_TEST_FIGURES !== undefined) process.stderr.write(`${figures}\n`);
    expect(receiver.paths.size, figures).toBe(ENDPOINTS);
    expect(tookMs, figures).toBeLessThan(BOUND_MS);
  },
);
