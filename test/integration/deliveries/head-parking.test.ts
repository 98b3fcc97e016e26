import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { startHeadParking } from '../../../src/engine/deliveries/loop/head-parking.ts';
import { claimDue, claimProbes, findDueEndpoints, releaseClaims } from '../../../src/engine/queue/claim.ts';
import { parkHeads, unparkHeads } from '../../../src/engine/queue/park.ts';
import { enableEndpoint } from '../../../src/features/endpoints/endpoint-modes.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import { loadConfig } from '../../../src/platform/config/config.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { startWorker } from '../../../src/worker/start-worker.ts';
import { buffersTouched } from '../../support/buffers-touched.ts';
import { addEndpoints, queueEach } from '../../support/many-endpoints.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { seededWorkerDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { vacuumed } from '../../support/vacuumed.ts';
import { eventually, startReceiver } from '../../support/webhook-receiver.ts';

const WABA = '900000000000101';
const CLOSED = { closedSeconds: 60, limit: 10_000 };

/** Endpoints that have been off for an hour, each with as many deliveries that wait. */
async function switchedOff(count: number, each: number, url = 'https://tenant.example') {
  const { database, url: databaseUrl } = await seededWorkerDatabase();
  const urls = Array.from({ length: count }, (_, n) => `${url}/${n}`);
  const ids = await addEndpoints(database, WABA, { urls, ratePerSecond: null });
  await database.raw(`update endpoint_health set mode_changed_at = now() - interval '1 hour',
                             mode = case when endpoint_id % 2 = 0 then 'paused' else 'disabled' end`);
  const waiting = ids.flatMap((id) => Array.from({ length: each }, () => id));
  await queueEach(database, WABA, waiting, (n) => `lane ${n}`);
  return { database, databaseUrl, ids };
}

const endpointsSeen = async (database: Parameters<typeof findDueEndpoints>[0]) =>
  (await findDueEndpoints(database, { afterEndpointId: '0', limit: 10_000 })).map(
    ({ endpointId }) => endpointId,
  );

test('a worker passes over what waits at endpoints that stay switched off, and delivers it once they are enabled', async () => {
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  const { database, databaseUrl, ids } = await switchedOff(300, 5, receiver.url);
  const worker = await startWorker(loadConfig(testSettings(databaseUrl)), silentLogger);
  onTestFinished(() => worker.stop());
  await eventually('no look sees them', async () => (await endpointsSeen(database)).length, { is: 0 });
  expect(receiver.received).toHaveLength(0);
  const [first = ''] = ids;
  await enableEndpoint({ database, actor: SYSTEM }, WABA, { id: first, waiting: 'send', by: 'a test' });
  await eventually('its deliveries', () => receiver.received.length, { is: 5 });
  await eventually('nothing is parked there', async () => {
    const left = await query(
      database,
      'select 1 from endpoint_health where has_parked and endpoint_id = :first',
      {
        first,
      },
    );
    return left.length === 0;
  });
  expect(new Set(receiver.received.map(({ path }) => path))).toEqual(new Set(['/0']));
});

test('a look over 5,000 endpoints that stay switched off, and one that takes deliveries, reads next to nothing', async () => {
  const { database } = await switchedOff(5_000, 1);
  const [open = ''] = await addEndpoints(database, WABA, {
    urls: ['https://open.example'],
    ratePerSecond: null,
  });
  await queueEach(database, WABA, [open], () => 'lane');
  await vacuumed(database);
  const look = () => buffersTouched(database, (explaining) => endpointsSeen(explaining));
  expect(await look()).toBeGreaterThan(5_000);
  const seen = await endpointsSeen(database);
  for (let from = 0; from < seen.length; from += 100) {
    await parkHeads(database, { ...CLOSED, endpointIds: seen.slice(from, from + 100) });
  }
  await vacuumed(database);
  expect(await endpointsSeen(database)).toEqual([open]);
  expect(await look()).toBeLessThan(30);
});

test('only what waits at an endpoint that has not been open for a while is parked', async () => {
  const { database, ids } = await switchedOff(4, 2);
  const [off = '', justOff = '', probing = '', open = ''] = ids;
  await database.raw(`update endpoint_health set mode_changed_at = now() where endpoint_id = ${justOff}`);
  await database.raw(`update endpoint_health set mode = 'probing' where endpoint_id = ${probing}`);
  await database.raw(`update endpoint_health set mode = 'open' where endpoint_id = ${open}`);
  expect(await parkHeads(database, { ...CLOSED, endpointIds: ids })).toMatchObject({ parked: 4 });
  expect(await endpointsSeen(database)).toEqual([justOff, open]);
  expect(await unparkHeads(database, 10)).toBe(0);
  expect(await endpointsSeen(database)).not.toContain(off);
});

test('looks pass over what waits at 2,000 endpoints that stay probed, probes find it, and it is due once an endpoint is open', async () => {
  const { database, ids } = await switchedOff(2_000, 2);
  await database.raw(
    `update endpoint_health set mode = 'probing', next_probe_at = now() + interval '1 hour'`,
  );
  await vacuumed(database);
  const look = () => buffersTouched(database, (explaining) => endpointsSeen(explaining));
  expect(await look()).toBeGreaterThan(2_000);
  for (let from = 0; from < ids.length; from += 100) {
    await parkHeads(database, { ...CLOSED, endpointIds: ids.slice(from, from + 100) });
  }
  await vacuumed(database);
  expect(await look()).toBeLessThan(30);
  const [first = ''] = ids;
  await database.raw(`update endpoint_health set next_probe_at = now() where endpoint_id = ${first}`);
  const token = randomUUID();
  const probes = await claimProbes(database, { limit: 20, token, leaseMs: 30_000 });
  expect(probes.map(({ endpointId }) => endpointId)).toEqual([first]);
  await releaseClaims(
    database,
    token,
    probes.map(({ deliveryId }) => deliveryId),
  );
  await database.raw(`update endpoint_health set mode = 'open' where endpoint_id = ${first}`);
  expect(await unparkHeads(database, 10)).toBe(2);
  expect(await endpointsSeen(database)).toEqual([first]);
});

test('what waits at 1,500 endpoints that are open again returns without a rest between two hundreds of them', async () => {
  const { database, ids } = await switchedOff(1_500, 1);
  for (let from = 0; from < ids.length; from += 100) {
    await parkHeads(database, { ...CLOSED, endpointIds: ids.slice(from, from + 100) });
  }
  await database.raw(`update endpoint_health set mode = 'open'`);
  const wokenMs: number[] = [];
  const parking = startHeadParking({
    database,
    logger: silentLogger,
    isLeader: () => false,
    loop: { wake: () => void wokenMs.push(performance.now()) },
    troubleWatch: { closed: () => undefined },
  });
  onTestFinished(() => parking.stop());
  await eventually('all are seen', async () => (await endpointsSeen(database)).length === ids.length);
  const gapsMs = wokenMs.slice(1).map((ms, n) => ms - (wokenMs[n] ?? 0));
  expect(gapsMs.length).toBeGreaterThanOrEqual(13);
  // With a rest after each, no gap would be shorter than its second.
  expect(Math.min(...gapsMs)).toBeLessThan(1_000);
});

test('an endpoint that is enabled while its heads are parked keeps none parked', async () => {
  const { database, ids } = await switchedOff(1, 200);
  const [id = ''] = ids;
  for (let turn = 0; turn < 10; turn += 1) {
    await database.raw(
      `update endpoint_health set mode = 'paused', mode_changed_at = now() - interval '1 hour'`,
    );
    await Promise.all([
      ...[1, 2, 3].map(() => parkHeads(database, { ...CLOSED, endpointIds: ids, limit: 60 })),
      sleep(turn).then(() =>
        enableEndpoint({ database, actor: SYSTEM }, WABA, { id, waiting: 'send', by: 'a test' }),
      ),
      unparkHeads(database, 10),
    ]);
    while ((await unparkHeads(database, 50)) > 0);
    expect(await query(database, 'select 1 from delivery_queue where parked')).toHaveLength(0);
    expect(await query(database, 'select 1 from endpoint_health where has_parked')).toHaveLength(0);
  }
});

test('parked heads whose endpoint is open can be claimed before they return to the looks', async () => {
  const { database, ids } = await switchedOff(1, 3);
  const [endpointId = ''] = ids;
  const [first] = await findDueEndpoints(database, { afterEndpointId: '0', limit: 1 });
  await parkHeads(database, { ...CLOSED, endpointIds: ids });
  await database.raw(`update endpoint_health set mode = 'open'`);
  const place = { endpointId, replay: false, position: first?.position ?? '0', share: 10 };
  const claim = {
    shares: [place],
    limit: 10,
    token: '00000000-0000-4000-8000-000000000001',
    leaseMs: 30_000,
  };
  expect(await claimDue(database, claim)).toHaveLength(3);
  expect(await unparkHeads(database, 10)).toBe(3);
});
