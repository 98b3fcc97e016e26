import { type ChildProcess, fork } from 'node:child_process';

/** Commands that a child answers: what each takes and gives. */
export type Protocol = Record<string, { argument: unknown; result: unknown }>;

type Question = { id: number; command: string; argument: unknown };
type Answer = { id: number; result?: unknown; error?: string };

export type Child<P extends Protocol> = {
  pid: number;
  ask<K extends keyof P & string>(command: K, argument: P[K]['argument']): Promise<P[K]['result']>;
  stop(): Promise<void>;
};

/** Runs `script` as a process of its own; `onCrash` hears when it ends unasked. */
export function startChild<P extends Protocol>(script: URL, onCrash: (error: Error) => void): Child<P> {
  const process = fork(script, { serialization: 'advanced' });
  const open = new Map<number, (answer: Answer) => void>();
  let ids = 0;
  let stopping = false;
  const exited = new Promise<void>((resolve) => process.once('exit', () => resolve()));
  process.on('message', (answer: Answer) => open.get(answer.id)?.(answer));
  process.on('error', onCrash);
  void exited.then(() => {
    const error = `${script.pathname.split('/').at(-1)} ended`;
    for (const [id, settle] of open) settle({ id, error });
    if (!stopping) onCrash(new Error(error));
  });
  return {
    pid: process.pid ?? 0,
    ask: (command, argument) => {
      ids += 1;
      const id = ids;
      return new Promise((resolve, reject) => {
        open.set(id, ({ result, error }) => {
          open.delete(id);
          if (error === undefined) resolve(result);
          else reject(new Error(error));
        });
        process.send({ id, command, argument } satisfies Question, (error) => {
          if (error !== null) reject(error);
        });
      });
    },
    stop: async () => {
      stopping = true;
      await endOf(process, exited);
    },
  };
}

const STOP_GRACE_MS = 3_000;

/** Without its channel the child ends by itself. */
async function endOf(process: ChildProcess, exited: Promise<void>): Promise<void> {
  if (process.connected) process.disconnect();
  const timer = setTimeout(() => process.kill('SIGKILL'), STOP_GRACE_MS);
  await exited;
  clearTimeout(timer);
}

type Handlers<P extends Protocol> = {
  [K in keyof P]: (argument: P[K]['argument']) => P[K]['result'] | Promise<P[K]['result']>;
};

/** The child's side: answers the parent's questions and ends with it, also when the parent is killed. */
export function answerParent<P extends Protocol>(handlers: Handlers<P>): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
  process.on('disconnect', () => process.exit(0));
  process.on('message', async ({ id, command, argument }: Question) => {
    const handler = handlers[command];
    let answer: Answer;
    try {
      if (handler === undefined) throw new Error(`there is no command ${command}`);
      answer = { id, result: await handler(argument) };
    } catch (error) {
      answer = { id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) };
    }
    process.send?.(answer);
  });
}
