import { setTimeout as sleep } from 'node:timers/promises';
import { type Bench, measureScenario } from './measure-scenario.ts';
import type { Figures } from './report/figures.ts';
import type { Scenario } from './scenarios.ts';

export type SkippedScenario = { scenario: string; reason: string };

type Progress = { quick: boolean; log: (line: string) => void; onFigures: (figures: Figures) => void };

/** Each scenario begins after so much silence. */
const SILENCE_MS = 5_000;
const QUICK_SILENCE_MS = 1_500;

/** Runs the scenarios one after the other; returns those that this machine or version cannot run. */
export async function runScenarios(
  bench: Bench,
  scenarios: readonly Scenario[],
  { quick, log, onFigures }: Progress,
): Promise<SkippedScenario[]> {
  const skipped: SkippedScenario[] = [];
  let run = Math.floor(Date.now() / 1000) % 1_000_000;
  for (const scenario of scenarios) {
    try {
      await bench.stack.useProduct(scenario.layout, scenario);
      if (scenario.peer !== null) await bench.processes.peer(scenario.peer);
    } catch (error) {
      bench.signal.throwIfAborted();
      skipped.push({ scenario: scenario.name, reason: (error as Error).message });
      continue;
    }
    await sleep(quick ? QUICK_SILENCE_MS : SILENCE_MS, undefined, { signal: bench.signal });
    log(`${scenario.name}: ${scenario.about}, ${scenario.count} bodies`);
    onFigures(await measureScenario(bench, scenario, run));
    // One for the bodies that are measured, one for the noise.
    run += 2;
  }
  return skipped;
}
