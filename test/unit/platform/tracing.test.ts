import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { tracing } from '../../../src/platform/metrics/metrics.ts';
import { startTracing, traceIdOf } from '../../../src/platform/tracing.ts';
import { listenInTest } from '../../support/listen.ts';

type Sent = { name: string; traceId: string; spanId: string; links: { traceId: string; spanId: string }[] };

async function traced(percent: number, statuses: number[] = [], receiver?: AddressInfo) {
  const sent: Sent[] = [];
  const server = createServer(async (request, response) => {
    const status = statuses.shift() ?? 200;
    const body = (await json(request)) as { resourceSpans: { scopeSpans: { spans: Sent[] }[] }[] };
    if (status === 200)
      sent.push(...body.resourceSpans.flatMap((one) => one.scopeSpans.flatMap((s) => s.spans)));
    response.writeHead(status).end();
  });
  await listenInTest(server);
  const warnings: string[] = [];
  const log = (_facts: object, message: string) => void warnings.push(message);
  const options = {
    url: `http://127.0.0.1:${(receiver ?? (server.address() as AddressInfo)).port}`,
    headers: {},
    percent,
    service: 'test',
    eventsOf: () => [],
    traceKeyOf: ({ eventId }: { eventId: string }) => eventId,
    logger: { warn: log, info: log } as never,
  };
  return { sent, warnings, tracing: startTracing(options) };
}

const event = (n: number, rest = {}) => ({ wabaId: '1', type: 'message', eventId: `wamid.${n}`, ...rest });
const span = { startMs: 1_000, endMs: 2_000 };

test('what was done for several events at once is in the trace of each, linked to one span for all', async () => {
  const { sent, tracing: running } = await traced(100);
  tracing.note?.({ name: 'intake', about: [event(1), event(2), event(2)], ...span });
  await running.close();
  const batch = sent.find(({ name }) => name === 'intake batch');
  const each = sent.filter(({ name }) => name === 'intake');
  expect(each.map(({ traceId }) => traceId)).toEqual([traceIdOf('1', 'wamid.1'), traceIdOf('1', 'wamid.2')]);
  const context = ({ traceId, spanId }: Sent) => ({ traceId, spanId });
  expect(batch?.links).toEqual(each.map(context));
  for (const { links } of each) expect(links).toEqual(batch === undefined ? [] : [context(batch)]);
});

test('events with one key share a trace only within a WABA', () => {
  expect(traceIdOf('1', 'wamid.1')).toBe(traceIdOf('1', 'wamid.1'));
  expect(traceIdOf('2', 'wamid.1')).not.toBe(traceIdOf('1', 'wamid.1'));
});

test('a share of the messages is traced, the same in every process', async () => {
  const events = Array.from({ length: 1_000 }, (_, n) => event(n));
  const chosen = async () => {
    const { sent, tracing: running } = await traced(20);
    for (const one of events) tracing.note?.({ name: 'claim', about: [one], ...span });
    await running.close();
    return sent.map(({ traceId }) => traceId);
  };
  const first = await chosen();
  expect(first.length).toBeGreaterThan(120);
  expect(first.length).toBeLessThan(280);
  expect(await chosen()).toEqual(first);
});

test('a receiver that never responds holds up the end of its process for a second at most', async () => {
  const silent = createServer(() => undefined);
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    silent.close();
    silent.closeAllConnections();
  });
  const { tracing: running } = await traced(100, [], silent.address() as AddressInfo);
  for (let n = 0; n < 1_200; n += 1) tracing.note?.({ name: 'claim', about: [event(n)], ...span });
  const startMs = performance.now();
  await running.close();
  // A request is given up after ten seconds.
  expect(performance.now() - startMs).toBeLessThan(9_000);
});

test('a receiver that refuses costs its spans and one warning; nothing waits for it', async () => {
  const { sent, warnings, tracing: running } = await traced(100, [503, 503]);
  for (let n = 0; n < 1_200; n += 1) tracing.note?.({ name: 'claim', about: [event(n)], ...span });
  await running.close();
  expect(sent).toHaveLength(200);
  expect(warnings).toEqual(['traces cannot be sent: they are dropped', 'traces are sent again']);
  expect([tracing.note, tracing.inActivity]).toEqual([null, null]);
});
