import { setTimeout as delay } from 'node:timers/promises';
import { enableEndpoint, holdEndpoint } from '../../src/features/endpoints/endpoint-modes.ts';
import { SYSTEM } from '../../src/platform/audit/audit.ts';
import { type Child, startChild } from '../child-process.ts';
import { nowMs } from '../clock.ts';
import type { DriverProtocol } from '../driver-process.ts';
import type { Manner, ReceiverProtocol } from '../receiver-process.ts';
import { checkDeliveries, type DeliveryCheck, expectedEvents } from '../report/delivery-check.ts';
import type { RunPlan } from '../run-plan.ts';
import { drainOpenWork } from '../stack/backlog.ts';
import { type SeededTarget, seedTargets } from '../stack/seed.ts';
import type { Installation } from './installation.ts';

/** The endpoints of the throughput scenarios, each with a tenant of its own. */
const ENDPOINTS = {
  fast: { manner: 'takes', options: {} },
  slow: { manner: 'takes 1 to 2 s', options: {} },
  'fails-first': { manner: 'refuses the first', options: {} },
  'few-per-second': { manner: 'takes', options: { rateLimitPerSecond: 40 } },
  'few-at-once': { manner: 'takes 1 to 2 s', options: { maxInFlight: 16 } },
} as const satisfies Record<string, { manner: Manner; options: object }>;

export type EndpointName = keyof typeof ENDPOINTS;

/** Upstream and the tenants' servers, outside of the cluster. */
export type Load = {
  /**
   * Sends messages for an endpoint and waits until all have arrived. `waiting`: they are taken in first, while the endpoint is
   * paused, so that what is measured is delivery alone.
   */
  run(load: {
    to: EndpointName;
    count: number;
    ratePerSecond: number | null;
    waiting?: boolean;
  }): Promise<LoadResult>;
  target(name: EndpointName): SeededTarget;
  stop(): Promise<void>;
};

export type LoadResult = {
  acknowledged: number;
  check: DeliveryCheck;
  /** First arrivals in order, in ms of the monotonic clock. */
  arrivedMs: number[];
  /** CPU time of each machine from the first body until nothing is open any more. */
  cpuMs: Record<string, number>;
  seconds: number;
  /** Attempts that were open at the endpoint at a time, at the most. */
  mostAtOnce: number;
};

const CONNECTIONS = { closedLoop: 64, openLoop: 512 };
const STALL_MS = 30_000;
const DRAIN_MS = 60_000;
const MACHINES = [
  'db-1',
  'db-2',
  'temporal-1',
  'temporal-2',
  'api-1',
  'api-2',
  'api-3',
  'worker-1',
  'worker-2',
];

/** Starts driver and receivers and gives each endpoint a WABA. */
export async function startLoad(installation: Installation): Promise<Load> {
  const onCrash = (error: Error) => process.emitWarning(error);
  const receiver = startChild<ReceiverProtocol>(new URL('../receiver-process.ts', import.meta.url), onCrash);
  const driver = startChild<DriverProtocol>(new URL('../driver-process.ts', import.meta.url), onCrash);
  const stop = async () => {
    await Promise.all([receiver.stop(), driver.stop()]);
  };
  try {
    const targets = await seed(installation, receiver);
    const target = (name: EndpointName) => {
      const found = targets.get(name);
      if (found === undefined) throw new Error(`there is no endpoint ${name}`);
      return found;
    };
    let run = Math.floor(Date.now() / 1_000) % 1_000_000;
    return {
      target,
      stop,
      run: async ({ to, count, ratePerSecond, waiting = false }) => {
        run += 1;
        const concurrency = ratePerSecond === null ? CONNECTIONS.closedLoop : CONNECTIONS.openLoop;
        const plan: RunPlan = {
          run,
          body: 'message',
          count,
          ratePerSecond,
          concurrency,
          targets: [target(to)],
        };
        return await measure({ installation, receiver, driver }, plan, { ...target(to), waiting });
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function seed(
  installation: Installation,
  receiver: Child<ReceiverProtocol>,
): Promise<Map<string, SeededTarget>> {
  const host = installation.network.outside;
  const entries = Object.entries(ENDPOINTS);
  const ports = await receiver.ask('listen', { host, manners: entries.map(([, { manner }]) => manner) });
  const targets = new Map<string, SeededTarget>();
  for (const [index, [name, { options }]] of entries.entries()) {
    const url = `http://${host}:${ports[index]}`;
    const [seeded] = await seedTargets(installation, 1 + index, [url], options);
    if (seeded !== undefined) targets.set(name, { ...seeded, endpoint: index });
  }
  return targets;
}

type Parts = { installation: Installation; receiver: Child<ReceiverProtocol>; driver: Child<DriverProtocol> };

async function measure(
  { installation, receiver, driver }: Parts,
  plan: RunPlan,
  { endpoint, wabaId, endpointId, waiting }: SeededTarget & { waiting: boolean },
): Promise<LoadResult> {
  await driver.ask('prepare', { plan, ingress: installation.ingress });
  await receiver.ask('reset', null);
  const tools = { ...installation, actor: SYSTEM };
  if (waiting) await holdEndpoint(tools, wabaId, { id: endpointId, mode: 'paused', reason: 'measured' });
  let before = readCpu(installation);
  let startedMs = nowMs();
  const times = await driver.ask('run', null);
  if (waiting) {
    await untilTakenIn(installation);
    before = readCpu(installation);
    startedMs = nowMs();
    await enableEndpoint(tools, wabaId, { id: endpointId, waiting: 'send', by: 'the bench' });
  }
  const expected = expectedEvents(plan, times);
  await untilArrived(receiver, endpoint, expected);
  await drainOpenWork(installation.database, [], DRAIN_MS, new AbortController().signal);
  const seconds = (nowMs() - startedMs) / 1_000;
  const after = readCpu(installation);
  const check = checkDeliveries(plan, times, await receiver.ask('arrivals', null));
  const mostAtOnce = (await receiver.ask('mostAtOnce', null))[endpoint] ?? 0;
  return {
    check,
    seconds,
    mostAtOnce,
    acknowledged: times.status.filter((status) => status === 200).length,
    arrivedMs: check.first.map(({ arrivedMs }) => arrivedMs).sort((a, b) => a - b),
    cpuMs: Object.fromEntries(MACHINES.map((name) => [name, (after[name] ?? 0) - (before[name] ?? 0)])),
  };
}

async function untilTakenIn({ database }: Installation): Promise<void> {
  for (;;) {
    const { rows } = await database.raw(`select 1 from inbox where state = 'new' limit 1`);
    if (rows.length === 0) return;
    await delay(200);
  }
}

async function untilArrived(
  receiver: Child<ReceiverProtocol>,
  endpoint: number,
  expected: number,
): Promise<void> {
  let last = { taken: -1, atMs: nowMs() };
  for (;;) {
    const taken = (await receiver.ask('progress', null))[endpoint] ?? 0;
    if (taken > last.taken) last = { taken, atMs: nowMs() };
    if (taken >= expected || nowMs() - last.atMs > STALL_MS) return;
    await delay(100);
  }
}

/** CPU time in ms that each machine has used so far. */
export function readCpu(installation: Installation): Record<string, number> {
  return Object.fromEntries(MACHINES.map((name) => [name, installation.machine(name).group.cpuMs()]));
}

/** Arrivals per second while it ran evenly: without the first part, in which limits rise, and without the end. */
export function steadyRate(arrivedMs: readonly number[], from = 0.35, to = 0.85): number {
  const [first, last] = [Math.floor(arrivedMs.length * from), Math.floor(arrivedMs.length * to)];
  const ms = (arrivedMs[last] ?? 0) - (arrivedMs[first] ?? 0);
  return ms <= 0 ? 0 : (1_000 * (last - first)) / ms;
}
