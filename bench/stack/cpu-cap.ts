import { existsSync } from 'node:fs';
import { mkdir, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const PERIOD_US = 100_000;
const ROOT = '/sys/fs/cgroup';

/** Processes may have so much of the machine together, in cores; `remove` when they have ended. */
export type CpuCap = { add(pid: number): Promise<void>; remove(): Promise<void> };

/** Makes a control group of the kernel's (version 2, or 1 where that has the controller). Throws where it may not. */
export async function makeCpuCap(name: string, cores: number): Promise<CpuCap> {
  const isVersion2 = existsSync(join(ROOT, 'cgroup.controllers'));
  const folder = join(isVersion2 ? ROOT : join(ROOT, 'cpu'), name);
  const quotaUs = Math.round(cores * PERIOD_US);
  try {
    if (isVersion2) await writeFile(join(ROOT, 'cgroup.subtree_control'), '+cpu');
    await mkdir(folder, { recursive: true });
    if (isVersion2) await writeFile(join(folder, 'cpu.max'), `${quotaUs} ${PERIOD_US}`);
    else {
      await writeFile(join(folder, 'cpu.cfs_period_us'), String(PERIOD_US));
      await writeFile(join(folder, 'cpu.cfs_quota_us'), String(quotaUs));
    }
  } catch (error) {
    throw new Error(`this machine gives no share of a core to a process: ${(error as Error).message}`);
  }
  return {
    add: (pid) => writeFile(join(folder, 'cgroup.procs'), String(pid)),
    remove: () => rmdir(folder).catch(() => undefined),
  };
}
