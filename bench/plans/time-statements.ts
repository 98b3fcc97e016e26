import { randomUUID } from 'node:crypto';
import {
  type ClaimedDelivery,
  claimDue,
  claimProbes,
  type DueShare,
  findDueEndpoints,
  findLatelyDue,
  lastPosition,
  releaseExpired,
} from '../../src/engine/queue/claim.ts';
import { insertDeliveries } from '../../src/engine/queue/delivery-log.ts';
import { enqueueDeliveries } from '../../src/engine/queue/enqueue.ts';
import { findRunRoom, type SettledDelivery, settleDeliveries } from '../../src/engine/queue/settle.ts';
import { releaseDueRetries, stepAside } from '../../src/engine/queue/sweep.ts';
import { countWaiting } from '../../src/engine/queue/waiting.ts';
import type { Database } from '../../src/platform/postgres/database.ts';
import { dayOfUuidV7, uuidV7 } from '../../src/platform/public-ids.ts';
import { percentilesOf } from '../report/percentiles.ts';

export type Timing = { statement: string; p50Ms: number; p95Ms: number; rows: number };

const RUNS = 100;

/** What the loop of one process asks for at once, and what it records at once. */
const CLAIM_LIMIT = 512;
const GROUP = 250;
const SHARE = 10;
const LEASE_MS = 30_000;

/** Endpoints of one page, as a loop walks over them. */
export const PAGE = { afterEndpointId: '0', limit: CLAIM_LIMIT };

/** What the endpoints of the first page may have. */
export async function sharesOf(database: Database): Promise<DueShare[]> {
  const found = await findDueEndpoints(database, PAGE);
  return found
    .filter(({ isOpen }) => isOpen)
    .map(({ endpointId, replay, position }) => ({ endpointId, replay, position, share: SHARE }));
}

/** The claim of a loop as it is timed here. */
export const claimOf = (
  database: Database,
  shares: readonly DueShare[],
  leaseMs = LEASE_MS,
  token: string = randomUUID(),
) => claimDue(database, { shares, limit: CLAIM_LIMIT, token, leaseMs });

/** Times each statement over some runs; what a run took out is replaced, so that all runs meet the same queue. */
export async function timeStatements(database: Database): Promise<Timing[]> {
  return [
    ...(await timeTheLoop(database)),
    await timeLoop('findDueEndpoints, a page', async (clock) => {
      await clock(() => findDueEndpoints(database, PAGE));
    }),
    await timeLoop('findLatelyDue, the last 2,000 positions', async (clock) => {
      const last = Number(await lastPosition(database));
      await clock(() => findLatelyDue(database, String(last - 2_000)));
    }),
    await timeLoop('claimProbes, none due', async (clock) => {
      const probes = { limit: 20, token: randomUUID(), leaseMs: LEASE_MS };
      await clock(() => claimProbes(database, probes));
    }),
    await timeLoop('releaseDueRetries, none due', async (clock) => {
      await clock(() =>
        releaseDueRetries(database, { withinSeconds: 3_600, runGraceMs: 3_000, limit: 1_000 }),
      );
    }),
    await timeLoop('findRunRoom, five endpoints', async (clock) => {
      const room = { perEndpoint: 20, overall: 200 };
      const endpoints = ['2', '3', '4', '5', '6'];
      await clock(() => database.transaction(async (trx) => (await findRunRoom(trx, endpoints, room)).size));
    }),
    await timeLoop('releaseExpired, none', async (clock) => {
      await clock(() => releaseExpired(database, { withinSeconds: 3_600, limit: 5_000 }));
    }),
    await timeLoop('releaseExpired, a dead loop’s claims', async (clock) => {
      await claimOf(database, await sharesOf(database), -1);
      await clock(() => releaseExpired(database, { withinSeconds: 3_600, limit: 5_000 }));
    }),
    await timeLoop('stepAside, none', async (clock) => {
      await clock(() => stepAside(database, { defaultSeconds: 3_600, limit: 50 }));
    }),
    await timeLoop('countWaiting, the endpoint with the most', async (clock) => {
      await clock(async () => (await countWaiting(database, ['1'])).get('1')?.count ?? 0);
    }),
    await timeLoop('countWaiting, five endpoints', async (clock) => {
      await clock(async () => (await countWaiting(database, ['2', '3', '4', '5', '6'])).size);
    }),
  ];
}

type Clock = <Result extends number | readonly unknown[]>(run: () => Promise<Result>) => Promise<Result>;

async function timeLoop(statement: string, turn: (clock: Clock) => Promise<void>): Promise<Timing> {
  const samples: Sample[] = [];
  for (let run = 0; run < RUNS; run += 1) await turn(clockInto(samples));
  return timingOf(statement, samples);
}

type Sample = { ms: number; rows: number };

function clockInto(samples: Sample[]): Clock {
  return async (run) => {
    const startMs = performance.now();
    const result = await run();
    samples.push({
      ms: performance.now() - startMs,
      rows: typeof result === 'number' ? result : result.length,
    });
    return result;
  };
}

function timingOf(statement: string, samples: readonly Sample[]): Timing {
  const { p50: p50Ms, p95: p95Ms } = percentilesOf(samples.map((sample) => sample.ms));
  const rows = samples.reduce((sum, sample) => sum + sample.rows, 0) / samples.length;
  return { statement, p50Ms, p95Ms, rows: Math.round(rows) };
}

/** Round after round as a loop and a publisher go: claim, settle in groups, queue as many again. */
async function timeTheLoop(database: Database): Promise<Timing[]> {
  const [claims, settles, enqueues]: Sample[][] = [[], [], []];
  for (let run = 0; run < RUNS; run += 1) {
    const token = randomUUID();
    const claimed = await clockInto(claims ?? [])(async () => {
      return await claimOf(database, await sharesOf(database), LEASE_MS, token);
    });
    await log(database, claimed);
    for (let from = 0; from < claimed.length; from += GROUP) {
      const group = claimed.slice(from, from + GROUP).map((delivery) => delivered(delivery, token));
      await clockInto(settles ?? [])(
        async () => (await settleDeliveries(database, group, { worker: 'bench', claim: null })).ours.size,
      );
      const next = nextOf(claimed.slice(from, from + GROUP));
      await clockInto(enqueues ?? [])(async () => {
        await database.transaction((trx) => enqueueDeliveries(trx, next));
        return next.length;
      });
    }
  }
  return [
    timingOf('claim of a loop', claims ?? []),
    timingOf('settle, groups of up to 250', settles ?? []),
    timingOf('enqueue, groups of up to 250', enqueues ?? []),
  ];
}

/** The rows of the log that a publisher would have written. */
async function log(database: Database, claimed: readonly ClaimedDelivery[]): Promise<void> {
  await database.transaction((trx) =>
    insertDeliveries(
      trx,
      claimed.map((delivery) => ({ ...delivery, wabaId: '1' })),
    ),
  );
}

const TIMINGS = { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: 2, totalMs: 3, reused: true };

function delivered(delivery: ClaimedDelivery, token: string): SettledDelivery {
  const { deliveryId, deliveryDay, endpointId } = delivery;
  return {
    deliveryId,
    deliveryDay,
    token,
    nextState: null,
    attempt: 1,
    probes: 0,
    delayMs: null,
    run: null,
    logState: 'delivered',
    error: null,
    workflowId: 'delivery-session/1',
    wabaId: '1',
    endpointId,
    startedAt: new Date(),
    ...TIMINGS,
    statusCode: 200,
    errorClass: null,
    errorMessage: null,
    url: 'https://bench.example',
    remoteAddress: null,
    customHeaders: null,
    responseHeadersJson: '{}',
    responseBody: Buffer.from('ok'),
  };
}

/** One more delivery for the same endpoint, in a lane of its own; every tenth waits behind the one before it. */
function again({ endpointId, eventDay, eventUuid }: ClaimedDelivery, laneOf: (id: string) => string) {
  const id = uuidV7(Date.now());
  const queued = { endpointId, lane: `own ${laneOf(id)}`, released: true, eventDay, eventUuid };
  return { ...queued, deliveryDay: dayOfUuidV7(id), deliveryId: id };
}

/** The same group as new deliveries. */
function nextOf(group: readonly ClaimedDelivery[]) {
  let before = '';
  return group.map((delivery, n) => {
    return again(delivery, (id) => {
      const lane = n % 10 === 9 && group[n - 1]?.endpointId === delivery.endpointId ? before : id;
      before = lane;
      return lane;
    });
  });
}
