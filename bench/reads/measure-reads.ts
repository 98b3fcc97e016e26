import type { Child } from '../child-process.ts';
import type { ReadResult, ReadsDriverProtocol } from '../reads-driver-process.ts';
import type { Stack } from '../stack/stack.ts';
import { openUsageWindow } from '../usage-window.ts';
import type { FilledWaba } from './fill-messages.ts';
import type { ReadScenario } from './read-scenarios.ts';

export type ReadFigures = ReadResult & {
  scenario: string;
  target: ReadScenario['target'] | null;
  isMet: boolean;
  /** CPU of API and PostgreSQL per request. */
  cpuMsPerRequest: { api: number; postgres: number };
  /** Share of the machine that other programs took. */
  othersCpuShare: number;
  apiRssPeakMib: number;
};

export type ReadBench = {
  stack: Stack;
  driver: Child<ReadsDriverProtocol>;
  waba: FilledWaba;
  authorization: string;
  seconds: number;
};

const WARM_UP_SECONDS = 3;
const FLOOD_PATHS = 5_000;

/** Runs a scenario after a short run that does not count. */
export async function measureReads(bench: ReadBench, scenario: ReadScenario): Promise<ReadFigures> {
  await run(bench, scenario, WARM_UP_SECONDS);
  const startMs = performance.now();
  const usage = openUsageWindow(bench.stack.pids());
  const result = await run(bench, scenario, bench.seconds);
  const { cpuMs, othersCpuMs, rssPeakMib } = usage.close();
  const perRequest = (name: string) => (cpuMs[name] ?? Number.NaN) / result.requests;
  const { target = null } = scenario;
  return {
    scenario: scenario.name,
    ...result,
    target,
    isMet:
      target === null ||
      ('p95Ms' in target ? result.latencyMs.p95 <= target.p95Ms : result.perSecond >= target.perSecond),
    cpuMsPerRequest: { api: perRequest('api'), postgres: perRequest('postgres') },
    othersCpuShare: othersCpuMs / (performance.now() - startMs) / 2,
    apiRssPeakMib: rssPeakMib.api ?? Number.NaN,
  };
}

async function run(
  { stack, driver, waba, authorization }: ReadBench,
  { ratePerSecond, connections, path }: ReadScenario,
  seconds: number,
): Promise<ReadResult> {
  const count = ratePerSecond === null ? FLOOD_PATHS : ratePerSecond * seconds;
  const paths = Array.from({ length: count }, (_, n) => path(waba, n));
  const common = { port: stack.apiPort, authorization, paths, connections };
  return ratePerSecond === null
    ? await driver.ask('flood', { ...common, seconds })
    : await driver.ask('paced', { ...common, ratePerSecond });
}

/** One line per scenario. */
export function readFiguresText(all: readonly ReadFigures[]): string {
  const head = [
    'scenario',
    'requests',
    'per s',
    'p50',
    'p95',
    'p99',
    'not 200',
    'api',
    'pg',
    'others',
    'MiB',
  ];
  const rows = all.map((one) => [
    one.scenario,
    String(one.requests),
    one.perSecond.toFixed(0),
    ...[one.latencyMs.p50, one.latencyMs.p95, one.latencyMs.p99].map((ms) => ms.toFixed(1)),
    String(one.notOk),
    ...[one.cpuMsPerRequest.api, one.cpuMsPerRequest.postgres].map((ms) => ms.toFixed(2)),
    `${(one.othersCpuShare * 100).toFixed(0)} %`,
    one.apiRssPeakMib.toFixed(0),
  ]);
  return [head, ...rows]
    .map((cells) => cells.map((cell, n) => (n === 0 ? cell.padEnd(20) : cell.padStart(9))).join(''))
    .join('\n')
    .concat('\n');
}
