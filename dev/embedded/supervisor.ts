import { setTimeout as delay } from 'node:timers/promises';
import { describeExit, type PartDefinition, type PartProcess, startPartProcess } from './process-part.ts';
import { recordProcesses } from './recorded-processes.ts';

interface SupervisorOptions {
  readonly log: (line: string) => void;
  /** Where the running processes are written down, for the clean-up after a kill of the supervisor. */
  readonly recordFile: string;
  /** Told after every start and end of a process. */
  readonly onPidChange?: (pids: Readonly<Record<string, number>>) => void;
  /** Told once, after everything was stopped because one part crashed too often. */
  readonly onGiveUp?: (error: PartFailedError) => void;
  /** First pause before a restart; doubles with each one. */
  readonly restartDelayMs?: number;
  /** Waits before a restart, until the signal at most. */
  readonly pause?: (pauseMs: number, signal: AbortSignal) => Promise<void>;
}

export interface Supervisor {
  /** Runs a part and keeps it running; resolves when it is ready. Throws PartFailedError, SupervisorStoppedError. */
  start(definition: PartDefinition): Promise<void>;
  /** Stops all parts, the last started first and servers after the others. */
  stop(): Promise<void>;
  /** Kills everything without asking. */
  kill(): void;
  isStopping(): boolean;
  /** The process numbers of the parts that run now, by name. */
  pids(): Record<string, number>;
}

interface Part {
  readonly definition: PartDefinition;
  process: PartProcess | undefined;
  restartTimes: number[];
}

interface State {
  readonly options: SupervisorOptions;
  readonly parts: Part[];
  readonly stopping: AbortController;
  stopped: Promise<void> | undefined;
}

const MAX_RESTARTS = 5;
const RESTART_WINDOW_MS = 60_000;
const PROBE_INTERVAL_MS = 40;
const SILENCE_TIMEOUT_MS = 300_000;
const TELL_WAITING_EVERY_MS = 15_000;
const LINE_CHARACTERS = 200;

/** Runs processes, restarts the one that crashes, and stops everything when one cannot be kept up. */
export function createSupervisor(options: SupervisorOptions): Supervisor {
  const state: State = { options, parts: [], stopping: new AbortController(), stopped: undefined };
  return {
    async start(definition) {
      const part: Part = { definition, process: undefined, restartTimes: [] };
      state.parts.push(part);
      await launch(state, part);
      void keepRunning(state, part);
    },
    stop: () => stopAll(state),
    kill() {
      state.stopping.abort();
      for (const part of state.parts) part.process?.kill();
    },
    isStopping: () => state.stopping.signal.aborted,
    pids: () => pidsOf(state),
  };
}

async function launch(state: State, part: Part): Promise<void> {
  await part.definition.removeLeftovers?.();
  throwIfStopped(state);
  const child = startPartProcess(part.definition);
  part.process = child;
  void child.exited.then(() => reportPids(state));
  reportPids(state);
  await untilReady(state, part.definition, child);
}

/** Waits while the process lives and prints: on a busy machine a start may take minutes. */
async function untilReady(state: State, definition: PartDefinition, child: PartProcess): Promise<void> {
  const { silenceTimeoutMs = SILENCE_TIMEOUT_MS } = definition;
  const begin = performance.now();
  let toldMs = 0;
  while (!child.hasExited()) {
    throwIfStopped(state);
    if (await definition.isReady().catch(() => false)) return;
    if (child.silentMs() > silenceTimeoutMs) {
      const what = `was not ready, and has printed nothing for ${silenceTimeoutMs / 1000} s`;
      throw new PartFailedError(definition, child, what);
    }
    const waitedMs = performance.now() - begin;
    if (waitedMs - toldMs > TELL_WAITING_EVERY_MS) {
      toldMs = waitedMs;
      state.options.log(waitingReport(definition, child, waitedMs));
    }
    await delay(PROBE_INTERVAL_MS);
  }
  throwIfStopped(state);
  throw new PartFailedError(definition, child, `did not start (${describeExit(await child.exited)})`);
}

function waitingReport({ name }: PartDefinition, child: PartProcess, waitedMs: number): string {
  const last = child.lastLines().at(-1);
  const said = last === undefined ? 'it has printed nothing yet' : `its last line: ${last}`;
  return shortened(`waiting for ${name}, ${Math.round(waitedMs / 1_000)} s; ${said}`);
}

async function keepRunning(state: State, part: Part): Promise<void> {
  const { options, stopping } = state;
  for (;;) {
    const exit = await part.process?.exited;
    if (stopping.signal.aborted || exit === undefined) return;
    options.log(partReport(part.definition, part.process, `stopped unexpectedly (${describeExit(exit)})`));
    const pauseMs = nextPauseMs(part, options.restartDelayMs ?? 500);
    if (pauseMs === undefined) return giveUp(state, part);
    await (options.pause ?? pauseFor)(pauseMs, stopping.signal);
    if (stopping.signal.aborted) return;
    await restart(state, part);
  }
}

function pauseFor(pauseMs: number, signal: AbortSignal): Promise<void> {
  return delay(pauseMs, undefined, { signal }).catch(() => undefined);
}

/** Never throws: what ends without being ready is one more crash for the loop. */
async function restart(state: State, part: Part): Promise<void> {
  const { log } = state.options;
  const begin = Date.now();
  log(`restarting ${part.definition.name}`);
  try {
    await launch(state, part);
    log(`${part.definition.name} is ready again after ${((Date.now() - begin) / 1000).toFixed(1)} s`);
  } catch (error) {
    if (state.stopping.signal.aborted || part.process?.hasExited() === true) return;
    log((error as Error).message);
    await part.process?.stop();
  }
}

async function giveUp(state: State, part: Part): Promise<void> {
  const what = `crashed ${MAX_RESTARTS + 1} times within ${RESTART_WINDOW_MS / 1000} s, so everything was stopped`;
  const failure = new PartFailedError(part.definition, part.process, what);
  await stopAll(state);
  state.options.onGiveUp?.(failure);
}

function stopAll(state: State): Promise<void> {
  state.stopping.abort();
  state.stopped ??= stopInReverse(state.parts);
  return state.stopped;
}

async function stopInReverse(parts: readonly Part[]): Promise<void> {
  const isServer = (part: Part) => Number(part.definition.isServer === true);
  for (const part of parts.toReversed().sort((one, other) => isServer(one) - isServer(other))) {
    await part.process?.stop();
    await part.definition.removeLeftovers?.().catch(() => undefined);
  }
}

/** The pause before the next restart, or undefined when the part has used up its restarts. */
function nextPauseMs(part: Part, firstDelayMs: number): number | undefined {
  const now = Date.now();
  part.restartTimes = part.restartTimes.filter((time) => now - time < RESTART_WINDOW_MS);
  if (part.restartTimes.length >= MAX_RESTARTS) return undefined;
  part.restartTimes.push(now);
  return firstDelayMs * 2 ** (part.restartTimes.length - 1);
}

function throwIfStopped(state: State): void {
  if (state.stopping.signal.aborted) throw new SupervisorStoppedError('stopped during start-up');
}

/** The record is a help for later; a full disk must not stop what runs. */
function reportPids(state: State): void {
  try {
    recordProcesses(state.options.recordFile, running(state));
    state.options.onPidChange?.(pidsOf(state));
  } catch (error) {
    state.options.log(`could not write down the running processes: ${(error as Error).message}`);
  }
}

function pidsOf(state: State): Record<string, number> {
  return Object.fromEntries(running(state).map(({ name, pid }) => [name, pid]));
}

function running(state: State): { name: string; pid: number; command: string }[] {
  return state.parts.flatMap(({ definition: { name, command }, process: child }) =>
    child?.pid === undefined || child.hasExited() ? [] : [{ name, pid: child.pid, command }],
  );
}

/** A part did not become ready, or crashed too often. The message holds its last log lines. */
export class PartFailedError extends Error {
  readonly part: string;
  constructor(definition: PartDefinition, child: PartProcess | undefined, what: string) {
    super(partReport(definition, child, what));
    this.name = 'PartFailedError';
    this.part = definition.name;
  }
}

/** Start-up was interrupted by a stop. */
export class SupervisorStoppedError extends Error {
  override readonly name = 'SupervisorStoppedError';
}

/** Settings and stacks are in the log as a whole. */
function shortened(line: string): string {
  return line.length > LINE_CHARACTERS ? `${line.slice(0, LINE_CHARACTERS - 1)}…` : line;
}

/** What happened to a part, its last log lines, and where the whole log is. */
function partReport(definition: PartDefinition, child: PartProcess | undefined, what: string): string {
  const lines = child?.lastLines() ?? [];
  const heading = lines.length === 0 ? `${what}.` : `${what}. Its last lines:`;
  return [
    `${definition.name} ${heading}`,
    ...lines.map((line) => shortened(`  | ${line}`)),
    `  log: ${definition.logFile}`,
  ].join('\n');
}
