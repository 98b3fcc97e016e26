import { cpus } from 'node:os';
import type { WorkerPeers } from '../platform/postgres/worker-processes.ts';

/** Of the last second or so. */
type Load = {
  /** Share of the time in which the event loop of this process was busy. */
  eventLoop: number;
  /** Share of its time in which this machine had nothing to do. */
  machineIdle: number;
};

/** Looks at the load of this process and its machine. */
export function watchLoad(windowMs = 1_000): () => Load {
  let atMs = performance.now();
  let loopBefore = performance.eventLoopUtilization();
  let machineBefore = machineTimes();
  let load: Load = { eventLoop: 0, machineIdle: 1 };
  return () => {
    const nowMs = performance.now();
    if (nowMs - atMs < windowMs) return load;
    const [loop, machine] = [performance.eventLoopUtilization(), machineTimes()];
    const eventLoop = performance.eventLoopUtilization(loop, loopBefore).utilization;
    const machineMs = machine.all - machineBefore.all;
    load = { eventLoop, machineIdle: machineMs > 0 ? (machine.idle - machineBefore.idle) / machineMs : 1 };
    [atMs, loopBefore, machineBefore] = [nowMs, loop, machine];
    return load;
  };
}

function machineTimes(): { idle: number; all: number } {
  const times = cpus().map((core) => core.times);
  const all = times.flatMap((ms) => Object.values(ms)).reduce((sum, ms) => sum + ms, 0);
  return { idle: times.reduce((sum, ms) => sum + ms.idle, 0), all };
}

const BUSY = 0.8;
const NO_ROOM = 0.1;

/**
 * Whether deliveries are better left to other workers: this one is busy, and the others have processors to themselves.
 * Where all share a machine that has nothing left, passing deliveries on costs more than it gains.
 */
export function leavesToOthers(
  { count, isElsewhere }: WorkerPeers,
  { eventLoop, machineIdle }: Load,
): boolean {
  return count > 1 && eventLoop > BUSY && (isElsewhere || machineIdle > NO_ROOM);
}
