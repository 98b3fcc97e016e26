import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const PERIOD_US = 100_000;
const ROOT = '/sys/fs/cgroup';

/** Each is a hierarchy of its own in version 1. */
const CONTROLLERS = ['cpu', 'cpuacct', 'freezer'] as const;

/** Processes that share a part of the machine, with all that they start. */
export type ControlGroup = {
  /** A process joins by writing its number to each of these. */
  memberFiles: readonly string[];
  add(pid: number): void;
  /** So much CPU together, in cores; null: what there is. */
  limitCores(cores: number | null): void;
  freeze(): void;
  thaw(): void;
  /** CPU time of all members so far, ended ones included. */
  cpuMs(): number;
  pids(): number[];
  /** When all members have ended. */
  remove(): void;
};

/** Makes a control group of the kernel's (version 2, or 1 where that has the controllers). Throws where it may not. */
export function makeControlGroup(name: string): ControlGroup {
  const isVersion2 = existsSync(join(ROOT, 'cgroup.controllers'));
  const folders = isVersion2 ? [join(ROOT, name)] : CONTROLLERS.map((one) => join(ROOT, one, name));
  const [cpu = '', accounting = cpu, freezer = cpu] = folders;
  try {
    if (isVersion2) writeFileSync(join(ROOT, 'cgroup.subtree_control'), '+cpu');
    for (const folder of folders) mkdirSync(folder, { recursive: true });
  } catch (error) {
    throw new Error(`this machine gives no share of a core to a process: ${(error as Error).message}`);
  }
  const memberFiles = folders.map((folder) => join(folder, 'cgroup.procs'));
  const setFrozen = (frozen: boolean) =>
    isVersion2
      ? writeFileSync(join(freezer, 'cgroup.freeze'), frozen ? '1' : '0')
      : writeFileSync(join(freezer, 'freezer.state'), frozen ? 'FROZEN' : 'THAWED');
  return {
    memberFiles,
    add: (pid) => {
      for (const file of memberFiles) writeFileSync(file, String(pid));
    },
    limitCores: (cores) => {
      const quotaUs = cores === null ? null : Math.round(cores * PERIOD_US);
      if (isVersion2) return writeFileSync(join(cpu, 'cpu.max'), `${quotaUs ?? 'max'} ${PERIOD_US}`);
      writeFileSync(join(cpu, 'cpu.cfs_period_us'), String(PERIOD_US));
      writeFileSync(join(cpu, 'cpu.cfs_quota_us'), String(quotaUs ?? -1));
    },
    freeze: () => setFrozen(true),
    thaw: () => setFrozen(false),
    cpuMs: () => {
      if (!isVersion2) return Number(readFileSync(join(accounting, 'cpuacct.usage'), 'utf8')) / 1e6;
      return Number(/^usage_usec (\d+)/m.exec(readFileSync(join(cpu, 'cpu.stat'), 'utf8'))?.[1]) / 1e3;
    },
    pids: () =>
      readFileSync(memberFiles[0] ?? '', 'utf8')
        .split('\n')
        .filter(Boolean)
        .map(Number),
    remove: () => {
      for (const folder of folders) {
        // One that is still in use is of no harm.
        try {
          rmdirSync(folder);
        } catch {}
      }
    },
  };
}
