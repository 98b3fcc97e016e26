import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BenchProcesses } from './bench-processes.ts';
import { nowMs } from './clock.ts';
import { expectedEvents } from './report/delivery-check.ts';
import { type Figures, figuresOf } from './report/figures.ts';
import type { RunPlan, RunTimes } from './run-plan.ts';
import type { Scenario } from './scenarios.ts';
import { drainOpenWork } from './stack/backlog.ts';
import { APP_SECRET } from './stack/settings.ts';
import type { Stack } from './stack/stack.ts';
import { openUsageWindow } from './usage-window.ts';

export type Bench = { stack: Stack; processes: BenchProcesses; signal: AbortSignal };

const FLOOD_CONNECTIONS = 64;
const OPEN_LOOP_CONNECTIONS = 512;

/** With bad endpoints every sixth body goes to one of them. */
const BAD_EVERY = 6;

/** Nothing new for so long: what is missing does not come. */
const STALL_MS = 20_000;
const ARRIVAL_TIMEOUT_MS = 180_000;
const DRAIN_TIMEOUT_MS = 60_000;
const PROGRESS_INTERVAL_MS = 50;

/** Runs one scenario from the first body until nothing is open any more. */
export async function measureScenario(bench: Bench, scenario: Scenario, run: number): Promise<Figures> {
  const { stack, processes, signal } = bench;
  const plan = planOf(processes, scenario, run);
  const floor = scenario.driver === 'floor';
  const drive = floor ? await prepareFloor(bench, plan) : await prepareDriver(bench, plan);
  await processes.receiver.ask('reset', null);
  const pids = {
    ...stack.pids(),
    receiver: processes.receiver.pid,
    driver: floor ? processes.floor.pid : processes.driver.pid,
  };
  const startedMs = nowMs();
  const window = openUsageWindow(pids);
  const notes: string[] = [];
  const times = await drive();
  const { distinct: cameBySendEnd } = await processes.receiver.ask('progress', null);
  await untilArrived(bench, plan, times);
  const except = processes.badTargets.map(({ endpointId }) => endpointId);
  const left = floor ? 0 : await drainOpenWork(stack.database, except, DRAIN_TIMEOUT_MS, signal);
  if (left > 0) notes.push(`${left} bodies or deliveries were still open at the end`);
  const usage = window.close();
  const windowMs = nowMs() - startedMs;
  const arrivals = await processes.receiver.ask('arrivals', null);
  const cpuCount = availableParallelism();
  return figuresOf({
    ...{ scenario, plan, times, arrivals, cameBySendEnd, usage, windowMs, cpuCount, notes },
  });
}

function planOf({ targets, badTargets }: BenchProcesses, scenario: Scenario, run: number): RunPlan {
  const { body, leadIn, count, ratePerSecond, endpoints, driver, withBadEndpoints } = scenario;
  const closedLoop = ratePerSecond === null || driver === 'floor';
  return {
    ...{ run, body, count: leadIn + count, leadIn, ratePerSecond },
    concurrency: closedLoop ? FLOOD_CONNECTIONS : OPEN_LOOP_CONNECTIONS,
    targets: targets[endpoints],
    bad: withBadEndpoints ? { targets: badTargets, every: BAD_EVERY } : null,
  };
}

type Drive = () => Promise<RunTimes>;

async function prepareDriver({ stack, processes: { driver } }: Bench, plan: RunPlan): Promise<Drive> {
  await driver.ask('prepare', { plan, ingress: { port: stack.apiPort, appSecret: APP_SECRET } });
  return () => driver.ask('run', null);
}

async function prepareFloor({ stack, processes }: Bench, plan: RunPlan): Promise<Drive> {
  const { floor, receiverUrl } = processes;
  await floor.ask('prepare', { plan, databaseUrl: stack.databaseUrl, receiverUrl });
  return () => floor.ask('run', null);
}

/** Waits until as many webhooks came as were acknowledged, or nothing new comes. */
async function untilArrived({ processes, signal }: Bench, plan: RunPlan, times: RunTimes): Promise<void> {
  const expected = expectedEvents(plan, (n) => times.status[n] === 200);
  const deadline = nowMs() + ARRIVAL_TIMEOUT_MS;
  let last = { distinct: -1, atMs: nowMs() };
  for (;;) {
    const { distinct } = await processes.receiver.ask('progress', null);
    if (distinct > last.distinct) last = { distinct, atMs: nowMs() };
    if (distinct >= expected || nowMs() > deadline || nowMs() - last.atMs > STALL_MS) return;
    await sleep(PROGRESS_INTERVAL_MS, undefined, { signal });
  }
}
