import { expect, onTestFinished, test } from 'vitest';
import type { MadeAttempt } from '../../../src/engine/deliveries/attempt/made-attempt.ts';
import { settleAttempts } from '../../../src/engine/deliveries/attempt/settle-attempts.ts';
import { makeEndpointHealth } from '../../../src/engine/deliveries/breaker.ts';
import { EndpointLimiter } from '../../../src/engine/deliveries/loop/attempt-limits.ts';
import { DeliveryRuns } from '../../../src/engine/deliveries/loop/delivery-runs.ts';
import { countFailed, takeUntoldFailures } from '../../../src/engine/endpoint/endpoint-failures.ts';
import {
  addEndpointCounts,
  endProbing,
  lockHealth,
  noteReports,
  noteWorking,
  startProbing,
} from '../../../src/engine/endpoint/endpoint-health.ts';
import type { Database, Transaction } from '../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import type { SendResult } from '../../../src/platform/sender/http-sender.ts';
import { claimAll } from '../../support/due-shares.ts';
import { idleLoop } from '../../support/idle-loop.ts';
import { addEndpoints, queueEach } from '../../support/many-endpoints.ts';
import { seededWorkerDatabase } from '../../support/test-database.ts';
import { eventually } from '../../support/webhook-receiver.ts';
import { madeAttempt } from '../../unit/deliveries/made-attempts.ts';
import { response } from '../../unit/deliveries/send-results.ts';

const WABA = '900000000000101';
const ENDPOINTS = 7;

/** The same database; `seen` gets the statements of its transactions. */
function watched(database: Database, seen: string[]): Database {
  return {
    ...database,
    transaction: (work) =>
      database.transaction((trx) => {
        const raw: Database['raw'] = (text, bindings) => {
          seen.push(text);
          return trx.raw(text, bindings);
        };
        return work({ ...trx, raw });
      }),
  };
}

/** Seven endpoints; `fail` has two deliveries of each attempted, and returns the statements that record the failures. */
async function failingEndpoints({ mayStart }: { mayStart: boolean }) {
  const { database } = await seededWorkerDatabase();
  const urls = Array.from({ length: ENDPOINTS }, (_, n) => `https://bad.example/${n}`);
  const ids = await addEndpoints(database, WABA, { urls, ratePerSecond: null });
  const health = makeEndpointHealth();
  let turn = 0;
  const fail = async (result: SendResult, { isProbe = false } = {}) => {
    turn += 1;
    await queueEach(database, WABA, [...ids, ...ids], (n) => `lane ${turn}-${n}`);
    const { deliveries, token } = await claimAll(database);
    expect(deliveries).toHaveLength(2 * ENDPOINTS);
    if (isProbe)
      await execute(database, `update endpoint_health set mode = 'probing', next_probe_at = now()`);
    const attempts = deliveries.map((claim): MadeAttempt => {
      const made = madeAttempt(result);
      const endpoint = { ...made.endpoint, id: claim.endpointId, wabaId: WABA, retryScheduleMs: [60_000] };
      return { ...made, ...claim, token, isProbe, endpoint };
    });
    const statements: string[] = [];
    const tools = {
      database: watched(database, statements),
      health,
      worker: 'test',
      onAttempt: () => undefined,
      onTrouble: () => undefined,
      runLimits: { perEndpoint: 20, overall: 200, mayStart: () => mayStart, takeStart: () => mayStart },
      gate: { isOpen: () => true, check: async () => true },
    };
    const { outcomes } = await settleAttempts(tools, attempts);
    expect(outcomes).not.toContain(null);
    return statements;
  };
  return { database, fail };
}

const changesOf = (statements: readonly string[]) =>
  statements.filter((text) => /update endpoint_health|for no key update/.test(text));

test('the trouble of many endpoints that fail takes one statement that locks them and one that notes it, and no lock while it is noted', async () => {
  const { database, fail } = await failingEndpoints({ mayStart: false });
  expect(changesOf(await fail(response(503)))).toHaveLength(2);
  const noted = await query(database, 'select 1 from endpoint_health where has_backlog');
  expect(noted).toHaveLength(ENDPOINTS);
  expect(changesOf(await fail(response(503)))).toEqual([]);
});

test('failed probes of many endpoints take one statement that locks them and one that notes them, each with its next probe', async () => {
  const { database, fail } = await failingEndpoints({ mayStart: false });
  expect(changesOf(await fail(response(404), { isProbe: true }))).toHaveLength(2);
  const probes = await query<{ failures: number; isLater: boolean; hasBacklog: boolean }>(
    database,
    `select probe_failures as failures, next_probe_at > now() as "isLater", has_backlog as "hasBacklog"
       from endpoint_health`,
  );
  expect(probes).toEqual(
    Array.from({ length: ENDPOINTS }, () => ({ failures: 1, isLater: true, hasBacklog: false })),
  );
});

test.each([
  [true, 1],
  [false, 0],
])('open runs are counted while one may be started (%s), in %i statement', async (mayStart, counts) => {
  const { fail } = await failingEndpoints({ mayStart });
  const statements = await fail(response(503));
  expect(statements.filter((text) => text.includes(`run = 'room'`))).toHaveLength(counts);
});

test('the next claim does not wait for what Temporal is told about the results before it', async () => {
  const { database } = await seededWorkerDatabase();
  const urls = ['https://bad.example/hook'];
  const [id = ''] = await addEndpoints(database, WABA, { urls, ratePerSecond: null });
  await execute(database, 'update webhook_endpoints set max_in_flight = 1');
  await queueEach(database, WABA, [id, id, id], (n) => `lane ${n}`);
  const steps: string[] = [];
  const calm = { note: () => undefined, isCalm: () => false, shareWith: () => undefined };
  const runs = new DeliveryRuns({ calm, onShown: () => undefined, onTrouble: () => undefined });
  runs.end = async () => void steps.push('told');
  const raw: Database['raw'] = (text, bindings) => {
    if (text.includes('delivery_queue')) steps.push('claim');
    return database.raw(text, bindings);
  };
  const sent: string[] = [];
  const sender = {
    send: async () => {
      sent.push('sent');
      steps.push('sent');
      return response(503);
    },
  };
  const limiter = new EndpointLimiter();
  limiter.allow(id, { maxInFlight: 1, ratePerSecond: null, workflows: null });
  const parts = { database: { ...database, raw }, sender: sender as never, limiter, runs };
  const { loop } = idleLoop(parts);
  onTestFinished(() => loop.drained());
  loop.start();
  await eventually('all are attempted', () => sent.length, { is: 3 });
  await eventually('all are told', () => steps.filter((step) => step === 'told').length, { is: 3 });
  for (const [at, step] of steps.entries())
    if (step === 'told' && steps.indexOf('sent', at) > 0) expect(steps.slice(0, at).at(-1)).toBe('claim');
});

test('processes that note failures of the same endpoints in any order never block each other for good', async () => {
  const { database } = await seededWorkerDatabase(12);
  const urls = Array.from({ length: ENDPOINTS }, (_, n) => `https://bad.example/${n}`);
  const ids = await addEndpoints(database, WABA, { urls, ratePerSecond: null });
  await execute(database, `update endpoint_health set mode = 'probing'`);
  const shuffled = () => ids.toSorted(() => Math.random() - 0.5);
  let failedPermanently = 0;
  const settle = async (trx: Transaction) => {
    const order = shuffled();
    await lockHealth(trx, order);
    const failed = Math.random() < 0.3 ? order.slice(0, 2) : [];
    failedPermanently += failed.length;
    if (failed.length > 0) await countFailed(trx, new Map(failed.map((id) => [id, 1])));
    const reports = order.map((endpointId, n) => {
      return { endpointId, isTroubled: n % 2 === 0, probeAfterMs: 1_000, failedProbes: 1 };
    });
    await noteReports(trx, reports);
    const [first, second] = order;
    if (first !== undefined) await startProbing(trx, first, { probeAfterMs: 1_000, reason: 'down' });
    if (second !== undefined) await endProbing(trx, second);
  };
  const counts = () =>
    shuffled().map((endpointId, n) => ({ ...NONE, endpointId, successes: n % 2, failures: 1 }));
  for (let round = 0; round < 30; round += 1) {
    const works = [
      ...Array.from({ length: 6 }, () => settle),
      async (trx: Transaction) => {
        await addEndpointCounts(trx, counts());
        await noteWorking(trx, new Map(shuffled().map((id, n) => [id, n % 2 > 0])));
      },
      (trx: Transaction) => takeUntoldFailures(trx, shuffled()[0] ?? ''),
    ];
    await Promise.all(works.map((work) => database.transaction(async (trx) => void (await work(trx)))));
  }
  const failed = await query<{ n: number }>(
    database,
    'select sum(failed)::integer as n from endpoint_failures',
  );
  expect(failed).toEqual([{ n: failedPermanently }]);
});

const NONE = { successes: 0, failures: 0, failedDeliveries: 0, totalMs: 0 };
