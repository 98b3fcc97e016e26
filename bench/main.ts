import { onStopSignals } from '../dev/embedded/start.ts';
/** The benchmark: starts the stack, drives it, prints a table. Run: npm run bench -- --help */

import { writeFile } from 'node:fs/promises';
import { availableParallelism, cpus } from 'node:os';
import { startBenchProcesses } from './bench-processes.ts';
import { type BenchOptions, readOptions, UsageError, usage } from './options.ts';
import { comparisonText } from './peers/compare-peers.ts';
import type { Figures } from './report/figures.ts';
import { figuresText, summaryLine } from './report/table.ts';
import { judgeTargets } from './report/targets.ts';
import { runScenarios, type SkippedScenario } from './run-scenarios.ts';
import { startStack } from './stack/stack.ts';

async function main(): Promise<number> {
  try {
    const options = readOptions(process.argv.slice(2));
    if (options === null) {
      process.stdout.write(usage());
      return 0;
    }
    return await runBench(options);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    process.stderr.write(`${error.message}\n`);
    return 2;
  }
}

async function runBench(options: BenchOptions): Promise<number> {
  const stopping = new AbortController();
  const stop = (error: Error) => stopping.abort(error);
  const release = onStopSignals({
    onFirst: () => stop(new StoppedError()),
    onSecond: () => process.exit(130),
  });
  const all: Figures[] = [];
  let skipped: SkippedScenario[] = [];
  let problem: unknown = null;
  const cleanups: (() => Promise<void>)[] = [];
  try {
    skipped = await orAborted(stopping.signal, measureAll(options, stopping, all, cleanups));
  } catch (error) {
    problem = error;
  }
  stopping.abort();
  for (const cleanup of cleanups.reverse()) await cleanup();
  release();
  await report(options, all, skipped);
  if (problem === null) return faults(all);
  process.stderr.write(`${problem instanceof Error ? problem.message : String(problem)}\n`);
  return problem instanceof StoppedError ? 130 : 1;
}

class StoppedError extends Error {
  override readonly name = 'StoppedError';
  constructor() {
    super('stopped');
  }
}

async function measureAll(
  { scenarios, quick, processes: processCount, databaseDays, checkout, profileDir }: BenchOptions,
  stopping: AbortController,
  all: Figures[],
  cleanups: (() => Promise<void>)[],
): Promise<SkippedScenario[]> {
  const { signal } = stopping;
  const onCrash = (error: Error) => stopping.abort(error);
  const starting = startStack({ log, processes: processCount, databaseDays, checkout, profileDir, onCrash });
  // Also when it is told to stop while it starts.
  cleanups.push(async () => (await starting.catch(() => null))?.stop());
  const stack = await starting;
  signal.throwIfAborted();
  const startingProcesses = startBenchProcesses(stack, onCrash);
  cleanups.push(async () => (await startingProcesses.catch(() => null))?.stop());
  const processes = await startingProcesses;
  return await runScenarios({ stack, processes, signal }, scenarios, {
    log,
    quick,
    onFigures: (figures) => {
      all.push(figures);
      log(summaryLine(figures));
    },
  });
}

async function orAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason));
  });
  work.catch(() => undefined);
  return await Promise.race([work, aborted]);
}

/** The exit code: fast and wrong is a failure. */
function faults(all: readonly Figures[]): number {
  const wrong = all.filter(({ missing, orderViolations }) => missing > 0 || orderViolations > 0);
  for (const { scenario } of wrong) process.stderr.write(`${scenario}: events are missing or out of order\n`);
  return wrong.length === 0 ? 0 : 1;
}

async function report(options: BenchOptions, all: Figures[], skipped: SkippedScenario[]): Promise<void> {
  if (all.length > 0) process.stdout.write(`\n${figuresText(all)}${comparisonText(all)}`);
  for (const { scenario, reason } of skipped) process.stdout.write(`${scenario} was skipped: ${reason}\n`);
  if (options.jsonFile === null) return;
  const machine = { cpus: availableParallelism(), model: cpus()[0]?.model ?? '', node: process.version };
  const { quick, processes } = options;
  const json = {
    finishedAt: new Date().toISOString(),
    quick,
    processes,
    machine,
    figures: all,
    targets: judgeTargets(all),
    skipped,
  };
  await writeFile(options.jsonFile, `${JSON.stringify(json, null, 2)}\n`);
}

function log(line: string): void {
  process.stderr.write(`${line}\n`);
}

// Not left to the end of all handles: whatever lingers would keep the shell waiting.
process.exit(await main());
