import { type NamedPids, readCpuMs, readMachineBusyMs, readPssMib, readRssMib } from './process-usage.ts';

export type Usage = {
  /** CPU time by name of the process, with its descendants. */
  cpuMs: Record<string, number>;
  /** CPU time of everything else on the machine: says how far the figures may be trusted. */
  othersCpuMs: number;
  /** Largest resident memory by name of the process, and of the whole product at one moment. */
  rssPeakMib: Record<string, number>;
  productPeakMib: number;
  /** PostgreSQL with all its backends, each shared page counted once. */
  postgresPssMib: number;
};

const SAMPLE_INTERVAL_MS = 250;

/** Whose memory the product answers for. */
const PRODUCT = ['api', 'worker', 'all'];

/** Resident memory of the product's processes by name, and of all. */
export function readProductMib(pids: NamedPids): { byName: Record<string, number>; all: number } {
  const byName: Record<string, number> = {};
  let all = 0;
  for (const name of PRODUCT) {
    const mib = (pids[name] ?? []).reduce((sum, pid) => sum + readRssMib(pid), 0);
    if (mib > 0) byName[name] = mib;
    all += mib;
  }
  return { byName, all };
}

/** Watches processes from now until `close`. */
export function openUsageWindow(pids: NamedPids): { close(): Usage } {
  const before = { cpuMs: readCpuMs(pids), oursMs: allOfOurs(), busyMs: readMachineBusyMs() };
  const rssPeakMib: Record<string, number> = {};
  let productPeakMib = 0;
  const sample = () => {
    const { byName, all } = readProductMib(pids);
    productPeakMib = Math.max(productPeakMib, all);
    for (const [name, mib] of Object.entries(byName)) rssPeakMib[name] = Math.max(rssPeakMib[name] ?? 0, mib);
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
      const postgresPssMib = (pids.postgres ?? []).reduce((sum, pid) => sum + readPssMib(pid), 0);
      return { cpuMs, othersCpuMs, rssPeakMib, productPeakMib, postgresPssMib };
    },
  };
}

/** Everything is a descendant of this process. */
function allOfOurs(): number {
  return readCpuMs({ all: [process.pid] }).all ?? 0;
}
