import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { NODE_FLAGS, PROCESS_ENVIRONMENT } from '../../src/platform/config/process-options.ts';
import { type BenchPart, startBenchPart } from './bench-part.ts';

/** The directory of this checkout. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Commands of `heliograph`. */
export type ProcessName = 'api' | 'worker' | 'all';

type Options = {
  name: ProcessName;
  settings: Readonly<Record<string, string>>;
  /** The directory of the product; null: this one. */
  checkout: string | null;
  /** Where /readyz answers. */
  ports: readonly number[];
  logFile: string;
  /** Put before the script, for instance to profile it. */
  nodeArguments: readonly string[];
  onCrash: (error: Error) => void;
};

function mainScript(checkout: string | null): string {
  return join(checkout ?? ROOT, 'src/main.ts');
}

function environmentOf(settings: Readonly<Record<string, string>>) {
  return { ...PROCESS_ENVIRONMENT, PATH: process.env.PATH, HOME: process.env.HOME, ...settings };
}

/** Creates the schema that the product expects. */
export async function runMigrate(
  settings: Readonly<Record<string, string>>,
  checkout: string | null,
): Promise<void> {
  const args = [...NODE_FLAGS, mainScript(checkout), 'migrate'];
  await promisify(execFile)(process.execPath, args, { env: environmentOf(settings) });
}

/** Runs one command of `heliograph` as in production and waits until it is ready. */
export async function startHeliographProcess(options: Options): Promise<BenchPart> {
  const { name, settings, checkout, ports, logFile, nodeArguments, onCrash } = options;
  const part = {
    name,
    command: process.execPath,
    args: [...NODE_FLAGS, ...nodeArguments, mainScript(checkout), name],
    env: environmentOf(settings),
    logFile,
    stopSignal: 'SIGTERM' as const,
    stopGraceMs: 40_000,
    isReady: () => allReady(ports),
  };
  return await startBenchPart(part, onCrash);
}

async function allReady(ports: readonly number[]): Promise<boolean> {
  return (await Promise.all(ports.map(answersReady))).every((isReady) => isReady);
}

async function answersReady(port: number): Promise<boolean> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/readyz`, { signal: AbortSignal.timeout(2_000) });
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  }
}
