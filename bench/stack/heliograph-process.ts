import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describeExit, type PartProcess, startPartProcess } from '../../dev/embedded/process-part.ts';
import { NODE_FLAGS, PROCESS_ENVIRONMENT } from '../../src/platform/config/process-options.ts';

/** The directory of this checkout. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const READY_TIMEOUT_MS = 60_000;

export type HeliographProcess = { pid: number; stop(): Promise<void> };

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
export async function startHeliographProcess(options: Options): Promise<HeliographProcess> {
  const { name, settings, checkout, ports, logFile, nodeArguments, onCrash } = options;
  let stopping = false;
  const part = startPartProcess({
    name,
    command: process.execPath,
    args: [...NODE_FLAGS, ...nodeArguments, mainScript(checkout), name],
    env: environmentOf(settings),
    logFile,
    stopSignal: 'SIGTERM',
    stopGraceMs: 40_000,
    isReady: () => allReady(ports),
  });
  const stop = async () => {
    stopping = true;
    await part.stop();
  };
  try {
    await untilReady(name, part, ports);
  } catch (error) {
    await stop();
    throw error;
  }
  void part.exited.then((exit) => {
    if (!stopping) onCrash(new Error(`${name} ended: ${describeExit(exit)}\n${lastLines(part)}`));
  });
  return { pid: part.pid ?? 0, stop };
}

async function untilReady(name: string, part: PartProcess, ports: readonly number[]): Promise<void> {
  const deadline = performance.now() + READY_TIMEOUT_MS;
  while (!(await allReady(ports))) {
    if (part.hasExited()) throw new Error(`${name} did not start:\n${lastLines(part)}`);
    if (performance.now() > deadline) throw new Error(`${name} is not ready in time:\n${lastLines(part)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function lastLines(part: PartProcess): string {
  return part.lastLines().slice(-8).join('\n');
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
