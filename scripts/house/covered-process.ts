import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { NODE_FLAGS, PROCESS_ENVIRONMENT } from '../../src/platform/config/process-options.ts';

/** Calls by function; a function is `src/file.ts name@offset`. */
export type Calls = Map<string, number>;

/** A process of the gateway whose function calls are counted. */
export type CoveredProcess = {
  printed(): string;
  /** What was called since this was last asked. */
  takeCalls(): Promise<Calls>;
  stop(): Promise<void>;
};

type ScriptCoverage = {
  url: string;
  functions: { functionName: string; ranges: { startOffset: number; count: number }[] }[];
};

/** Runs one command of `heliograph` and counts its calls with V8's precise coverage; resolves when `ready` is printed. */
export async function startCovered(
  command: string,
  settings: Readonly<Record<string, string>>,
  ready: RegExp,
): Promise<CoveredProcess> {
  const child = spawn(process.execPath, ['--inspect=127.0.0.1:0', ...NODE_FLAGS, 'src/main.ts', command], {
    env: { ...PROCESS_ENVIRONMENT, PATH: process.env.PATH, ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (text += chunk));
  const printed = async (pattern: RegExp) => {
    for (const deadline = Date.now() + 60_000; ; await new Promise((resolve) => setTimeout(resolve, 50))) {
      const match = pattern.exec(text);
      if (match !== null) return match[0];
      if (child.exitCode !== null || Date.now() > deadline)
        throw new Error(`${command} is not ready:\n${text}`);
    }
  };
  const inspector = await connect(await printed(/ws:\/\/\S+/));
  await inspector.send('Profiler.enable');
  await inspector.send('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  await printed(ready);
  return {
    printed: () => text,
    takeCalls: async () => callsIn((await inspector.send('Profiler.takePreciseCoverage')) as Taken),
    stop: async () => {
      inspector.close();
      const exited = once(child, 'exit');
      if (child.exitCode === null) child.kill('SIGTERM');
      await exited;
    },
  };
}

type Taken = { result: ScriptCoverage[] };

function callsIn({ result }: Taken): Calls {
  const root = new URL('../../', import.meta.url).href;
  const calls: Calls = new Map();
  for (const { url, functions } of result) {
    if (!url.startsWith(`${root}src/`)) continue;
    for (const { functionName, ranges } of functions) {
      const [range = { startOffset: 0, count: 0 }] = ranges;
      // What starts with the file is the module itself, which runs when it is loaded.
      if (range.count === 0 || range.startOffset === 0) continue;
      calls.set(`${url.slice(root.length)} ${functionName}@${range.startOffset}`, range.count);
    }
  }
  return calls;
}

async function connect(url: string) {
  const socket = new WebSocket(url);
  await once(socket, 'open');
  const waiting = new Map<number, (result: unknown) => void>();
  let last = 0;
  socket.addEventListener('message', ({ data }) => {
    const { id, result } = JSON.parse(String(data));
    waiting.get(id)?.(result);
    waiting.delete(id);
  });
  return {
    send: (method: string, params: object = {}) =>
      new Promise<unknown>((resolve) => {
        last += 1;
        waiting.set(last, resolve);
        socket.send(JSON.stringify({ id: last, method, params }));
      }),
    close: () => socket.close(),
  };
}
