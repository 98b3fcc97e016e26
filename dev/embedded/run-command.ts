import { execFile } from 'node:child_process';

interface CommandResult {
  /** Null when it could not be run or was killed. */
  readonly code: number | null;
  /** Output, then error output, cut to the last 16 KiB. */
  readonly output: string;
}

const KEPT_CHARACTERS = 16_384;

/**
 * Runs a program to its end, or until this process exits.
 * Never rejects: a program that cannot be run has the reason as its output.
 */
export function runCommand(
  [program = '', ...args]: readonly string[],
  {
    timeoutMs: timeout,
    ...options
  }: { env?: Readonly<Record<string, string | undefined>>; cwd?: string; timeoutMs?: number } = {},
): Promise<CommandResult> {
  return new Promise((resolve) => {
    const limits = { timeout, killSignal: 'SIGKILL', maxBuffer: Number.POSITIVE_INFINITY } as const;
    const child = execFile(program, args, { ...options, ...limits }, (error, stdout, stderr) => {
      process.off('exit', kill);
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : null;
      const output = child.pid === undefined ? String(error?.message) : stdout + stderr;
      resolve({ code, output: output.slice(-KEPT_CHARACTERS) });
    });
    const kill = (): boolean => child.kill('SIGKILL');
    process.once('exit', kill);
    child.stdin?.end();
  });
}

const KEPT = ['PATH', 'HOME', 'TMPDIR', 'TMP', 'TEMP', 'SystemRoot', 'USER', 'LOGNAME'];

/** The environment for servers that are not ours: a PGOPTIONS or MINIO_* of the user's shell must not reach them. */
export function minimalEnvironment(
  extra: Readonly<Record<string, string>> = {},
): Record<string, string | undefined> {
  const kept = KEPT.filter((name) => process.env[name] !== undefined);
  return {
    ...Object.fromEntries(kept.map((name) => [name, process.env[name]])),
    LC_ALL: 'C',
    TZ: 'UTC',
    ...extra,
  };
}
