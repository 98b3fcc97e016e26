import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { appendFileSync, mkdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { stripVTControlCharacters } from 'node:util';

/** How one part of the embedded stack is run. */
export interface PartDefinition {
  readonly name: string;
  /** Put before the command, for instance to run it under another account. Has to end in an exec of it. */
  readonly launcher?: readonly string[];
  readonly command: string;
  readonly args: readonly string[];
  /** The whole environment of the process. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly logFile: string;
  /** Asks the part to stop; also sent by the kernel (Linux) when the supervisor itself dies. */
  readonly stopSignal: 'SIGTERM' | 'SIGINT';
  readonly stopGraceMs: number;
  /** While it starts, it may print nothing for so long. */
  readonly silenceTimeoutMs?: number;
  /** Stopped after the parts that are not, for these use it. */
  readonly isServer?: boolean;
  /** Rejecting counts as not ready yet. */
  readonly isReady: () => Promise<boolean>;
  /** Called before each start and after each end: what a killed process leaves behind. */
  readonly removeLeftovers?: () => Promise<void>;
  /** Gets every line of output. */
  readonly onLine?: (line: string) => void;
}

export interface PartExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Set when the program could not be run at all. */
  readonly error?: Error;
}

export interface PartProcess {
  /** Undefined when the program could not be run. */
  readonly pid: number | undefined;
  /** Never rejects. */
  readonly exited: Promise<PartExit>;
  readonly hasExited: () => boolean;
  readonly lastLines: () => string[];
  /** For how long it has printed nothing. */
  readonly silentMs: () => number;
  /** Asks it to stop, kills its process group after the grace time, and waits for the end. */
  stop(): Promise<void>;
  /** Kills its process group at once. */
  kill(): void;
}

/** Starts the process of a part in a process group of its own, so that Ctrl-C reaches only the supervisor. */
export function startPartProcess(definition: PartDefinition): PartProcess {
  let printedAt = performance.now();
  const log = openPartLog(definition.logFile, (line) => {
    printedAt = performance.now();
    definition.onLine?.(line);
  });
  const [command = '', ...args] = commandLine(definition);
  const child = spawn(command, args, {
    env: definition.env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8');
    stream.on('data', (chunk: string) => log.write(chunk));
    stream.on('error', () => undefined);
  }
  let ended = false;
  const exited = exitOf(child).then((exit) => {
    ended = true;
    log.close();
    killGroup(child.pid);
    return exit;
  });
  return {
    pid: child.pid,
    exited,
    hasExited: () => ended,
    lastLines: log.lastLines,
    silentMs: () => performance.now() - printedAt,
    stop: () => stop(child, exited, definition),
    kill: () => (ended ? undefined : killGroup(child.pid)),
  };
}

/** A sentence's end for a report: `exit code 3`, `signal SIGKILL` or why it could not be run. */
export function describeExit(exit: PartExit): string {
  if (exit.error !== undefined) return exit.error.message;
  return exit.signal === null ? `exit code ${exit.code}` : `signal ${exit.signal}`;
}

function commandLine({ launcher = [], command, args, stopSignal }: PartDefinition): string[] {
  const guard = hasParentDeathSignal() ? [SETPRIV, '--pdeathsig', stopSignal.slice(3)] : [];
  return [...launcher, ...guard, command, ...args];
}

const SETPRIV = 'setpriv';

let parentDeathSignal: boolean | undefined;

/** Whether util-linux's setpriv is here, which has the kernel end a child when its parent dies. */
function hasParentDeathSignal(): boolean {
  parentDeathSignal ??=
    process.platform === 'linux' &&
    spawnSync(SETPRIV, ['--pdeathsig', 'TERM', 'true'], { stdio: 'ignore' }).status === 0;
  return parentDeathSignal;
}

function exitOf(child: ChildProcess): Promise<PartExit> {
  return new Promise((resolve) => {
    let exit: PartExit | undefined;
    child.once('error', (error) => {
      if (child.pid === undefined) resolve({ code: null, signal: null, error });
    });
    child.once('close', () => exit !== undefined && resolve(exit));
    child.once('exit', (code, signal) => {
      exit = { code, signal };
      // A grandchild may hold the output open: its last lines are worth a moment, not a hang.
      setTimeout(resolve, 200, exit).unref();
    });
  });
}

async function stop(
  child: ChildProcess,
  exited: Promise<PartExit>,
  definition: PartDefinition,
): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) child.kill(definition.stopSignal);
  const timer = setTimeout(() => killGroup(child.pid), definition.stopGraceMs);
  await exited;
  clearTimeout(timer);
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // The group is empty.
  }
}

const MAX_FILE_BYTES = 10 * 1024 * 1024;
const MAX_LINE_CHARACTERS = 8_192;
const KEPT_LINES = 20;

interface PartLog {
  /** Takes output as it comes, in pieces of any size. */
  write(chunk: string): void;
  /** The last lines, oldest first. */
  lastLines(): string[];
  /** Takes the rest that came without a line end. */
  close(): void;
}

/**
 * Splits a part's output into lines, appends them to a file (rotated at 10 MiB, one old file kept)
 * and keeps the last ones in memory for the report of a crash.
 */
export function openPartLog(file: string, onLine: (line: string) => void): PartLog {
  mkdirSync(dirname(file), { recursive: true });
  let sizeBytes = fileSize(file);
  let partial = '';
  let kept: string[] = [];

  function take(lines: readonly string[]): void {
    if (lines.length === 0) return;
    kept = [...kept, ...lines].slice(-KEPT_LINES);
    for (const line of lines) onLine(line);
    const text = stripVTControlCharacters(`${lines.join('\n')}\n`);
    if (sizeBytes > MAX_FILE_BYTES) sizeBytes = rotate(file);
    sizeBytes += append(file, text);
  }

  return {
    write(chunk) {
      const pieces = (partial + chunk).split('\n');
      partial = pieces.pop() ?? '';
      if (partial.length > MAX_LINE_CHARACTERS) {
        pieces.push(partial);
        partial = '';
      }
      take(pieces.map((line) => line.slice(0, MAX_LINE_CHARACTERS).replace(/\r$/, '')));
    },
    lastLines: () => kept.map((line) => stripVTControlCharacters(line)),
    close() {
      if (partial !== '') take([partial]);
      partial = '';
    },
  };
}

/** A full disk must not take the parts down with their logs. */
function append(file: string, text: string): number {
  try {
    appendFileSync(file, text, { mode: 0o600 });
  } catch {
    return 0;
  }
  return Buffer.byteLength(text);
}

function rotate(file: string): number {
  try {
    rmSync(`${file}.1`, { force: true });
    renameSync(file, `${file}.1`);
  } catch {
    return fileSize(file);
  }
  return 0;
}

function fileSize(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}
