import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { NODE_FLAGS } from '../../src/platform/config/process-options.ts';

const MAIN_SCRIPT = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const READY_MS = 120_000;

export type ServerProcess = {
  child: ChildProcess;
  /** Everything it printed, for failure messages. */
  output(): string;
  /** Resolves when it has printed this; a process that does not is ended. */
  printed(what: RegExp): Promise<RegExpExecArray>;
  /** kill -9. */
  kill(): Promise<void>;
  stop(): Promise<void>;
};

/** Runs `heliograph-server <name>` as users do. It does not outlive the process of the tests. */
export function startServerProcess(
  name: 'api' | 'worker',
  settings: Record<string, string>,
  readyMs = READY_MS,
): ServerProcess {
  const child = spawn(process.execPath, [...NODE_FLAGS, MAIN_SCRIPT, name], {
    env: { PATH: process.env.PATH ?? '', ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const endAtOnce = () => child.kill('SIGKILL');
  process.once('exit', endAtOnce);
  const exited = once(child, 'exit').finally(() => process.off('exit', endAtOnce));
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      text += chunk;
    });
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  const end = async (signal: NodeJS.Signals) => {
    if (!hasEnded()) child.kill(signal);
    await exited;
  };
  return {
    child,
    output: () => text,
    printed: async (what) => {
      const deadline = performance.now() + readyMs;
      for (;;) {
        const found = what.exec(text);
        if (found !== null) return found;
        if (hasEnded() || performance.now() > deadline) {
          await end('SIGKILL');
          throw new Error(`no ${name}:\n${text}`);
        }
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    },
    kill: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
  };
}
