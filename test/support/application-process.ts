import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { NODE_FLAGS } from '../../src/platform/config/process-options.ts';

const MAIN_SCRIPT = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const ADDRESS = /api listens at (http:\/\/[\d.]+:\d+)/;

export type ApiProcess = {
  url: string;
  /** kill -9. */
  kill(): Promise<void>;
};

/** Runs `heliograph-server api` as users do, on a port of its own unless one is given; resolves when it listens. */
export async function startApiProcess(settings: Record<string, string>, port = '0'): Promise<ApiProcess> {
  const child = spawn(process.execPath, [...NODE_FLAGS, MAIN_SCRIPT, 'api'], {
    env: { PATH: process.env.PATH ?? '', ...settings, HELIOGRAPH_API_PORT: port },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let printed = '';
  const note = (chunk: Buffer) => {
    printed += chunk;
  };
  child.stdout.on('data', note);
  child.stderr.on('data', note);
  const exited = once(child, 'exit');
  const deadline = performance.now() + 120_000;
  while (!ADDRESS.test(printed)) {
    if (child.exitCode !== null || performance.now() > deadline) throw new Error(`no api:\n${printed}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return {
    url: ADDRESS.exec(printed)?.[1] ?? '',
    kill: async () => {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
      await exited;
    },
  };
}
