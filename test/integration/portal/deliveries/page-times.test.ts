import { expect, test } from 'vitest';
import { addEndpoint } from '../../../support/test-accounts.ts';
import { startTestApi, WABA } from '../../api/api-harness.ts';
import { addUser, tenantOf } from '../portal-browser.ts';
import { addManyDeliveries } from './many-deliveries.ts';

/** A million with HELIOGRAPH_TEST_DELIVERIES=1000000, to see how long pages take; fewer say as much about their size. */
const COUNT = Number(process.env.HELIOGRAPH_TEST_DELIVERIES ?? 30_000);
const ROUNDS = 20;
const MAX_PAGE_BYTES = 100 * 1024;
/** Several times what any page takes: a plan that goes through the log shows, a busy machine does not. */
const MAX_FASTEST_MS = 100;

test('every page about deliveries stays small and quick over a long log', { timeout: 600_000 }, async () => {
  const api = await startTestApi();
  const { database } = api;
  const endpoints = await Promise.all(
    [1, 2, 3].map((n) => addEndpoint(database, WABA, `https://receiver.example/${n}`)),
  );
  await addManyDeliveries(database, {
    wabaId: WABA,
    endpointIds: endpoints.map(({ id }) => id),
    count: COUNT,
  });
  const tenantId = await tenantOf(database, WABA);
  const browser = await addUser(api, { email: 'op@example.com', role: 'operator', tenantId: null });
  expect(tenantId).not.toBe('');
  const base = `/portal/w/${WABA}`;
  const list = await browser.get(`${base}/deliveries`);
  const one = /deliveries\/(dlv_[0-9a-f]{32})/.exec(list.body)?.[1];
  const next = /href="([^"]*cursor=[^"]*)" rel="next"/.exec(list.body)?.[1]?.replaceAll('&amp;', '&');
  const paths = [
    `${base}/deliveries`,
    `${base}/deliveries/rows`,
    next ?? '',
    `${base}/deliveries?state=failed`,
    `${base}/deliveries?state=pending`,
    `${base}/deliveries?state=dropped`,
    `${base}/deliveries?answer=5xx`,
    `${base}/deliveries?answer=timeout`,
    `${base}/deliveries?eventType=order`,
    `${base}/deliveries?endpointId=${endpoints[0]?.id}`,
    `${base}/deliveries?id=wamid.7`,
    `${base}/deliveries/${one}`,
    `${base}/endpoints`,
    `${base}/endpoints/${endpoints[0]?.id}`,
    `${base}/endpoints/${endpoints[0]?.id}/edit`,
    `${base}/replays`,
    `${base}/replays/new`,
    `${base}/event-types`,
    `${base}/event-types/order`,
    '/portal/operator/deliveries',
    '/portal/operator/deliveries?state=failed',
    '/portal/operator/deliveries?eventType=order',
  ];
  for (const path of paths) {
    const times: number[] = [];
    let bytes = 0;
    for (let round = 0; round < ROUNDS; round += 1) {
      const startMs = performance.now();
      const page = await browser.get(path);
      times.push(performance.now() - startMs);
      expect([path, page.statusCode]).toEqual([path, 200]);
      bytes = Buffer.byteLength(page.body);
    }
    times.sort((a, b) => a - b);
    const at = (share: number) => (times[Math.floor(times.length * share)] ?? 0).toFixed(1);
    process.stdout.write(`${path.slice(0, 80)}: p50 ${at(0.5)} ms, p95 ${at(0.95)} ms, ${bytes} bytes\n`);
    expect([path, bytes < MAX_PAGE_BYTES]).toEqual([path, true]);
    expect([path, (times[0] ?? 0) < MAX_FASTEST_MS]).toEqual([path, true]);
  }
});
