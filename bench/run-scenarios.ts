import { type Bench, measureScenario } from './measure-scenario.ts';
import type { Figures } from './report/figures.ts';
import { listScenarios, type Scenario } from './scenarios.ts';

export type SkippedScenario = { scenario: string; reason: string };

type Progress = { quick: boolean; log: (line: string) => void; onFigures: (figures: Figures) => void };

/**
 * Before the first measurement of the product, of the floor, and after each restart of the worker. V8 compiles the hot
 * code of each process a few times, the last time after some 20,000 events, and everything stalls for half a second
 * then: a minute in the life of a process that runs for weeks.
 */
const WARM_UP = {
  auto: { ratePerSecond: 800, seconds: 30, quickSeconds: 4 },
  always: { ratePerSecond: 10, seconds: 3, quickSeconds: 3 },
} as const;

/** Runs the scenarios one after the other; returns those that this version cannot run. */
export async function runScenarios(
  bench: Bench,
  scenarios: readonly Scenario[],
  { quick, log, onFigures }: Progress,
): Promise<SkippedScenario[]> {
  const skipped: SkippedScenario[] = [];
  let run = Math.floor(Date.now() / 1000) % 1_000_000;
  let warm = '';
  for (const scenario of scenarios) {
    const { deliveryWorkflows: mode } = scenario;
    try {
      await bench.stack.useDeliveryWorkflows(mode);
    } catch (error) {
      bench.signal.throwIfAborted();
      skipped.push({ scenario: scenario.name, reason: (error as Error).message });
      continue;
    }
    const part = `${scenario.driver} ${mode}`;
    if (warm !== part) {
      const seconds = quick ? WARM_UP[mode].quickSeconds : WARM_UP[mode].seconds;
      log(`warming up (${seconds} s at ${WARM_UP[mode].ratePerSecond}/s)`);
      for (const one of warmUps(scenario, seconds)) {
        run += 1;
        await measureScenario(bench, one, run);
      }
      warm = part;
    }
    run += 1;
    log(`${scenario.name}: ${scenario.about}, ${scenario.count} bodies`);
    onFigures(await measureScenario(bench, scenario, run));
  }
  return skipped;
}

/** Half over one endpoint, half over many. */
function warmUps({ driver, deliveryWorkflows }: Scenario, seconds: number): Scenario[] {
  const { ratePerSecond } = WARM_UP[deliveryWorkflows];
  const [plain] = listScenarios(false);
  if (plain === undefined) return [];
  const count = (ratePerSecond * seconds) / 2;
  const warmUp = { ...plain, leadIn: 0, driver, deliveryWorkflows, ratePerSecond, count };
  return [
    { ...warmUp, endpoints: 1 },
    { ...warmUp, endpoints: 100 },
  ];
}
