import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BenchProcesses } from './bench-processes.ts';
import type { Child } from './child-process.ts';
import { nowMs } from './clock.ts';
import type { DriverProtocol } from './driver-process.ts';
import { expectedEvents } from './report/delivery-check.ts';
import { type Figures, figuresOf } from './report/figures.ts';
import type { RunPlan, RunTimes } from './run-plan.ts';
import type { Noise, Scenario } from './scenarios.ts';
import { drainOpenWork } from './stack/backlog.ts';
import { APP_SECRET } from './stack/settings.ts';
import type { Stack } from './stack/stack.ts';
import { openUsageWindow, readProductMib } from './usage-window.ts';

export type Bench = { stack: Stack; processes: BenchProcesses; signal: AbortSignal };

const FLOOD_CONNECTIONS = 64;
const OPEN_LOOP_CONNECTIONS = 512;

/** Nothing new for so long: what is missing does not come. */
const STALL_MS = 20_000;
const ARRIVAL_TIMEOUT_MS = 180_000;
const DRAIN_TIMEOUT_MS = 60_000;
const PROGRESS_INTERVAL_MS = 50;

/** Bodies of one run as they were sent. */
type Sent = { plan: RunPlan; times: RunTimes };

/** Runs one scenario from the first body until nothing is open any more. `run` and the next number are its own. */
export async function measureScenario(bench: Bench, scenario: Scenario, run: number): Promise<Figures> {
  const { stack, processes } = bench;
  const isFloor = scenario.driver === 'floor';
  const plan = planOf(processes, scenario, run, isFloor);
  const peer = scenario.peer === null ? null : await processes.peer(scenario.peer);
  const port = peer?.port ?? stack.apiPort;
  const drive = isFloor ? await prepareFloor(bench, plan) : await prepare(port, processes.driver, plan);
  const noisePlan = scenario.noise === null ? null : planOf(processes, noiseBody(scenario.noise), run + 1);
  const driveNoise = noisePlan === null ? null : await prepare(port, processes.noiseDriver, noisePlan);
  await processes.receiver.ask('reset', null);
  const pids = {
    ...stack.pids(),
    ...(peer === null ? {} : { peer: peer.pids }),
    receiver: [processes.receiver.pid],
    driver: isFloor ? [processes.floor.pid] : [processes.driver.pid, processes.noiseDriver.pid],
  };
  const productAtRestMib = readProductMib(pids).all;
  const startedMs = nowMs();
  const window = openUsageWindow(pids);
  const [sent, noise] = await Promise.all([drive(), driveNoise?.() ?? null]);
  const cameBySendEnd = await countTaken(bench, scenario);
  const awaited = noise !== null && scenario.noise?.hasToArrive === true ? [sent, noise] : [sent];
  await untilArrived(bench, scenario, awaited);
  const left = isFloor || peer !== null ? 0 : await drain(bench);
  const usage = window.close();
  const windowMs = nowMs() - startedMs;
  const arrivals = await processes.receiver.ask('arrivals', null);
  return figuresOf({
    scenario,
    arrivals,
    cameBySendEnd,
    usage,
    productAtRestMib,
    windowMs,
    sent,
    awaited,
    cpuCount: availableParallelism(),
    notes: left > 0 ? [`${left} bodies or deliveries were still open at the end`] : [],
  });
}

type Sending = Pick<Scenario, 'body' | 'count' | 'ratePerSecond' | 'to'>;

function noiseBody({ to, body, ratePerSecond, count }: Noise): Sending {
  return { body, to, ratePerSecond, count };
}

function planOf({ targets }: BenchProcesses, sending: Sending, run: number, isFloor = false): RunPlan {
  const { body, count, ratePerSecond, to } = sending;
  const isClosedLoop = ratePerSecond === null || isFloor;
  const concurrency = isClosedLoop ? FLOOD_CONNECTIONS : OPEN_LOOP_CONNECTIONS;
  return { run, body, count, ratePerSecond, concurrency, targets: targets[to] };
}

type Drive = () => Promise<Sent>;

async function prepare(port: number, driver: Child<DriverProtocol>, plan: RunPlan): Promise<Drive> {
  await driver.ask('prepare', { plan, ingress: { port, appSecret: APP_SECRET } });
  return async () => ({ plan, times: await driver.ask('run', null) });
}

async function prepareFloor({ stack, processes }: Bench, plan: RunPlan): Promise<Drive> {
  const { floor, receiverUrl } = processes;
  await floor.ask('prepare', { plan, databaseUrl: stack.databaseUrl, receiverUrl });
  return async () => ({ plan, times: await floor.ask('run', null) });
}

/** How many webhooks the endpoints have taken that the scenario waits for. */
async function countTaken({ processes }: Bench, { to, noise }: Scenario): Promise<number> {
  const taken = await processes.receiver.ask('progress', null);
  const awaited = noise?.hasToArrive === true ? [to, noise.to] : [to];
  const endpoints = awaited.flatMap((name) => processes.targets[name].map(({ endpoint }) => endpoint));
  return endpoints.reduce((sum, endpoint) => sum + (taken[endpoint] ?? 0), 0);
}

/** Waits until as many webhooks came as were acknowledged, or nothing new comes. */
async function untilArrived(bench: Bench, scenario: Scenario, awaited: readonly Sent[]): Promise<void> {
  const expected = awaited.reduce((sum, { plan, times }) => sum + expectedEvents(plan, times), 0);
  const deadline = nowMs() + ARRIVAL_TIMEOUT_MS;
  let last = { taken: -1, atMs: nowMs() };
  for (;;) {
    const taken = await countTaken(bench, scenario);
    if (taken > last.taken) last = { taken, atMs: nowMs() };
    if (taken >= expected || nowMs() > deadline || nowMs() - last.atMs > STALL_MS) return;
    await sleep(PROGRESS_INTERVAL_MS, undefined, { signal: bench.signal });
  }
}

/** Waits until nothing is open but at endpoints that refuse for long, or get very much; returns what still is after a time. */
async function drain({ stack, processes: { targets, wideEndpointIds }, signal }: Bench): Promise<number> {
  const refusing = [...targets.bad, ...targets['fails-often']].map(({ endpointId }) => endpointId);
  const except = [...refusing, ...wideEndpointIds];
  return await drainOpenWork(stack.database, except, DRAIN_TIMEOUT_MS, signal);
}
