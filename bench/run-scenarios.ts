import { type Bench, measureScenario } from './measure-scenario.ts';
import type { Figures } from './report/figures.ts';
import { listScenarios, type Scenario } from './scenarios.ts';

export type SkippedScenario = { scenario: string; reason: string };

type Progress = { log: (line: string) => void; onFigures: (figures: Figures) => void };

/** Before the first measurement of the product, of the floor, and after each restart of the worker: compiles code, opens connections. */
const WARM_UP = {
  auto: { ratePerSecond: 100, seconds: 3 },
  always: { ratePerSecond: 10, seconds: 3 },
} as const;

/** Runs the scenarios one after the other; returns those that this version cannot run. */
export async function runScenarios(
  bench: Bench,
  scenarios: readonly Scenario[],
  { log, onFigures }: Progress,
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
      log(`warming up (${WARM_UP[mode].seconds} s at ${WARM_UP[mode].ratePerSecond}/s)`);
      for (const one of warmUps(scenario)) {
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
function warmUps({ driver, deliveryWorkflows }: Scenario): Scenario[] {
  const { ratePerSecond, seconds } = WARM_UP[deliveryWorkflows];
  const [plain] = listScenarios(false);
  if (plain === undefined) return [];
  const count = (ratePerSecond * seconds) / 2;
  const warmUp = { ...plain, leadIn: 0, driver, deliveryWorkflows, ratePerSecond, count };
  return [
    { ...warmUp, endpoints: 1 },
    { ...warmUp, endpoints: 100 },
  ];
}
