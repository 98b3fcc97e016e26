import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { NODE_FLAGS } from '../../src/platform/config/process-options.ts';

const MAIN_SCRIPT = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

export type WorkerProcess = {
  child: ChildProcess;
  /** Everything it printed, for failure messages. */
  output(): string;
  ready(): Promise<void>;
  /** kill -9. */
  kill(): Promise<void>;
  stop(): Promise<void>;
};

/** Runs `heliograph-server worker` as users do, with the given settings. */
export function startWorkerProcess(settings: Record<string, string>): WorkerProcess {
  const child = spawn(process.execPath, [...NODE_FLAGS, MAIN_SCRIPT, 'worker'], {
    env: { PATH: process.env.PATH ?? '', ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let printed = '';
  const exited = once(child, 'exit');
  child.stdout?.on('data', (chunk) => {
    printed += chunk;
  });
  child.stderr?.on('data', (chunk) => {
    printed += chunk;
  });
  const end = async (signal: NodeJS.Signals) => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    await exited;
  };
  return {
    child,
    output: () => printed,
    ready: async () => {
      const deadline = performance.now() + 120_000;
      while (!printed.includes('worker ready')) {
        if (child.exitCode !== null || performance.now() > deadline)
          throw new Error(`no worker:\n${printed}`);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    },
    kill: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
  };
}
