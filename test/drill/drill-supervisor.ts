import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import {
  describeExit,
  type PartDefinition,
  type PartProcess,
  startPartProcess,
} from '../../dev/embedded/process-part.ts';
import type { Supervisor } from '../../dev/embedded/supervisor.ts';

export type DrillSupervisor = Supervisor & {
  /** The process of a part that runs now. */
  pidOf(name: string): number | undefined;
  /** What a part printed last. */
  lastLines(name: string): string;
  /** Kills and leaves it dead for so long; resolves when the part is ready again, with the time it was away. */
  killFor(name: string, awayMs: number, kill: (pid: number) => void): Promise<number>;
  /** Kills something that the part's process lives through; resolves once the part answers again. */
  hurt(name: string, kill: (pid: number) => void): Promise<number>;
  /** Freezes, waits, thaws. */
  pauseFor(name: string, awayMs: number): Promise<number>;
  /** Ends a part for good, asking it first or not; it can be started again like a new one. */
  remove(name: string, how: 'stop' | 'kill'): Promise<void>;
  /** Resolves once every part runs and answers; throws after `timeoutMs`. */
  allReady(timeoutMs: number): Promise<void>;
};

type Part = {
  definition: PartDefinition;
  process: PartProcess;
  /** How long to leave it dead after the kill under way; null when its end is no deed of ours. */
  awayMs: number | null;
  isRemoved: boolean;
};

type Options = {
  log: (line: string) => void;
  /** A part ended though nobody killed it. */
  onCrash: (name: string, how: string) => void;
};

/** When a part ends without having been killed. */
const CRASH_RESTART_MS = 500;
const PROBE_INTERVAL_MS = 50;
/** A part that does not come back within this is a finding. */
const READY_TIMEOUT_MS = 300_000;

/**
 * Keeps parts running however often they are killed: the product's own supervisor gives up after a few crashes in
 * a minute, which is right for it and no use here.
 */
export function createDrillSupervisor(options: Options): DrillSupervisor {
  const parts = new Map<string, Part>();
  const stopping = new AbortController();
  const pidOf = (name: string) => {
    const process = parts.get(name)?.process;
    return process === undefined || process.hasExited() ? undefined : process.pid;
  };
  return {
    start: async (definition) => {
      await definition.removeLeftovers?.();
      const part: Part = {
        definition,
        process: startPartProcess(definition),
        awayMs: null,
        isRemoved: false,
      };
      parts.set(definition.name, part);
      void keepRunning(part, stopping.signal, options);
      await untilReady(part, READY_TIMEOUT_MS, stopping.signal);
    },
    stop: async () => {
      stopping.abort();
      for (const part of [...parts.values()].reverse()) {
        if (part.process.pid !== undefined) send(part.process.pid, 'SIGCONT');
        await part.process.stop();
        await part.definition.removeLeftovers?.().catch(() => undefined);
      }
    },
    isStopping: () => stopping.signal.aborted,
    kill: () => {
      stopping.abort();
      for (const { process } of parts.values()) process.kill();
    },
    pids: () =>
      Object.fromEntries(
        [...parts.keys()].flatMap((name) => {
          const pid = pidOf(name);
          return pid === undefined ? [] : [[name, pid]];
        }),
      ),
    pidOf,
    lastLines: (name) => partNamed(parts, name).process.lastLines().join('\n'),
    killFor: async (name, awayMs, kill) => {
      const part = partNamed(parts, name);
      const beganMs = Date.now();
      const killed = part.process;
      part.awayMs = awayMs;
      if (killed.pid !== undefined) kill(killed.pid);
      await untilReady(part, READY_TIMEOUT_MS, stopping.signal, killed);
      return Date.now() - beganMs;
    },
    hurt: async (name, kill) => {
      const part = partNamed(parts, name);
      const beganMs = Date.now();
      if (part.process.pid !== undefined) kill(part.process.pid);
      await untilReady(part, READY_TIMEOUT_MS, stopping.signal);
      return Date.now() - beganMs;
    },
    pauseFor: async (name, awayMs) => {
      const { pid } = partNamed(parts, name).process;
      if (pid === undefined || !send(pid, 'SIGSTOP')) return 0;
      await delay(awayMs);
      send(pid, 'SIGCONT');
      return awayMs;
    },
    remove: async (name, how) => {
      const part = parts.get(name);
      if (part === undefined) return;
      part.isRemoved = true;
      parts.delete(name);
      if (how === 'kill') part.process.kill();
      else await part.process.stop();
      await part.process.exited;
    },
    allReady: async (timeoutMs) => {
      await Promise.all([...parts.values()].map((part) => untilReady(part, timeoutMs, stopping.signal)));
    },
  };
}

/** The processes that a process started. */
export function childrenOf(pid: number): number[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === pid ? [Number(name)] : [];
    } catch {
      return [];
    }
  });
}

/** Whether the signal found its process. */
export function send(pid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch {
    return false;
  }
}

function partNamed(parts: ReadonlyMap<string, Part>, name: string): Part {
  const part = parts.get(name);
  if (part === undefined) throw new Error(`there is no part ${name}`);
  return part;
}

async function keepRunning(part: Part, signal: AbortSignal, { log, onCrash }: Options): Promise<void> {
  const { definition } = part;
  for (;;) {
    const exit = await part.process.exited;
    if (signal.aborted || part.isRemoved) return;
    if (part.awayMs === null) onCrash(definition.name, describeExit(exit));
    await delay(part.awayMs ?? CRASH_RESTART_MS);
    part.awayMs = null;
    await definition.removeLeftovers?.().catch((error: Error) => log(error.message));
    if (signal.aborted || part.isRemoved) return;
    part.process = startPartProcess(definition);
  }
}

/** Waits for an answer of another process than `not`. */
async function untilReady(
  part: Part,
  timeoutMs: number,
  signal: AbortSignal,
  not?: PartProcess,
): Promise<void> {
  const { definition } = part;
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    if (signal.aborted) throw new Error('the drill was stopped');
    const current = part.process;
    const running = current !== not && !current.hasExited();
    if (running && (await definition.isReady().catch(() => false)) && !current.hasExited()) return;
    if (Date.now() > deadline) {
      throw new Error(
        `${definition.name} was not ready within ${timeoutMs / 1000} s:\n${current.lastLines().join('\n')}`,
      );
    }
    await delay(PROBE_INTERVAL_MS);
  }
}
