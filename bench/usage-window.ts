import { readCpuMs, readMachineBusyMs, readPssMib, readRssMib } from './process-usage.ts';

export type Usage = {
  /** CPU time by process, with its descendants. */
  cpuMs: Record<string, number>;
  /** CPU time of everything else on the machine: says how far the figures may be trusted. */
  othersCpuMs: number;
  rssPeakMib: Record<string, number>;
  /** PostgreSQL with all its backends, each shared page counted once. */
  postgresPssMib: number;
};

const SAMPLE_INTERVAL_MS = 250;

/** Whose memory the product answers for. */
const WATCHED = ['api', 'worker'];

/** Watches processes from now until `close`. */
export function openUsageWindow(pids: Readonly<Record<string, number>>): { close(): Usage } {
  const before = { cpuMs: readCpuMs(pids), oursMs: allOfOurs(), busyMs: readMachineBusyMs() };
  const rssPeakMib: Record<string, number> = {};
  const sample = () => {
    for (const name of WATCHED) {
      const pid = pids[name];
      if (pid !== undefined) rssPeakMib[name] = Math.max(rssPeakMib[name] ?? 0, readRssMib(pid));
    }
  };
  sample();
  const timer = setInterval(sample, SAMPLE_INTERVAL_MS);
  return {
    close: () => {
      clearInterval(timer);
      sample();
      const after = readCpuMs(pids);
      const cpuMs = Object.fromEntries(
        Object.entries(after).map(([name, ms]) => [name, Math.max(0, ms - (before.cpuMs[name] ?? 0))]),
      );
      const oursMs = allOfOurs() - before.oursMs;
      const othersCpuMs = Math.max(0, readMachineBusyMs() - before.busyMs - oursMs);
      const { postgres } = pids;
      const postgresPssMib = postgres === undefined ? 0 : readPssMib(postgres);
      return { cpuMs, othersCpuMs, rssPeakMib, postgresPssMib };
    },
  };
}

/** Everything is a descendant of this process. */
function allOfOurs(): number {
  return readCpuMs({ all: process.pid }).all ?? 0;
}
