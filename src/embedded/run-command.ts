import { spawn } from 'node:child_process';

interface CommandResult {
  /** Null when it could not be run or was killed. */
  readonly code: number | null;
  /** Output and error output in the order they came, cut to the last 16 KiB. */
  readonly output: string;
}

const KEPT_CHARACTERS = 16_384;

/**
 * Runs a program to its end, or until this process exits.
 * Never rejects: a program that cannot be run has the reason as its output.
 */
export function runCommand(
  command: readonly string[],
  options: {
    env?: Readonly<Record<string, string | undefined>>;
    cwd?: string;
    timeoutMs?: number;
  } = {},
): Promise<CommandResult> {
  const [program = '', ...args] = command;
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      env: options.env ?? process.env,
      cwd: options.cwd,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: options.timeoutMs,
      killSignal: 'SIGKILL',
    });
    const kill = (): boolean => child.kill('SIGKILL');
    process.once('exit', kill);
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8');
      stream.on('data', (chunk: string) => {
        output = (output + chunk).slice(-KEPT_CHARACTERS);
      });
    }
    const settle = (result: CommandResult): void => {
      process.off('exit', kill);
      resolve(result);
    };
    child.once('error', (error) => settle({ code: null, output: error.message }));
    child.once('close', (code) => settle({ code, output }));
  });
}
