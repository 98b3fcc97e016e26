import { readdirSync, readFileSync } from 'node:fs';

/** The kernel counts CPU time for programs in hundredths of a second. */
const MS_PER_TICK = 10;
const KIB_PER_MIB = 1024;

type ProcessStat = { pid: number; parentPid: number; cpuMs: number };

/** Parent and CPU time, ended children's included, from a line of /proc/<pid>/stat. */
export function parseProcessStat(line: string): ProcessStat {
  // The program's name is in brackets and may hold anything.
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ');
  const ticks = [11, 12, 13, 14].reduce((sum, index) => sum + Number(fields[index]), 0);
  return { pid: Number.parseInt(line, 10), parentPid: Number(fields[1]), cpuMs: ticks * MS_PER_TICK };
}

/** The processes of each name. */
export type NamedPids = Readonly<Record<string, readonly number[]>>;

/** CPU time in ms so far of the processes of each name with all their descendants; empty where there is no /proc. */
export function readCpuMs(pids: NamedPids): Record<string, number> {
  const children = childrenByParent();
  const named = Object.entries(pids).map(([name, all]): [string, number] => [
    name,
    all.flatMap((pid) => descendantsOf(pid, children)).reduce((sum, { cpuMs }) => sum + cpuMs, 0),
  ]);
  return Object.fromEntries(named);
}

/** CPU time in ms that this machine has been busy with anything. */
export function readMachineBusyMs(): number {
  const [line = ''] = readText('/proc/stat').split('\n', 1);
  const [user = 0, nice = 0, system = 0, , , irq = 0, softIrq = 0] = line.split(/\s+/).slice(1).map(Number);
  return (user + nice + system + irq + softIrq) * MS_PER_TICK;
}

/** Resident memory of one process in MiB. */
export function readRssMib(pid: number): number {
  return kibOf(readText(`/proc/${pid}/status`), 'VmRSS') / KIB_PER_MIB;
}

/** Memory of a process and its descendants in MiB, shared pages divided among those that share them. */
export function readPssMib(pid: number): number {
  const tree = descendantsOf(pid, childrenByParent());
  const kib = tree.map((one) => kibOf(readText(`/proc/${one.pid}/smaps_rollup`), 'Pss'));
  return kib.reduce((sum, one) => sum + one, 0) / KIB_PER_MIB;
}

function kibOf(text: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0);
}

type Family = { self: Map<number, ProcessStat>; children: Map<number, ProcessStat[]> };

function childrenByParent(): Family {
  const family: Family = { self: new Map(), children: new Map() };
  for (const name of listDirectory('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const line = readText(`/proc/${name}/stat`);
    if (line === '') continue;
    const stat = parseProcessStat(line);
    family.self.set(stat.pid, stat);
    const siblings = family.children.get(stat.parentPid);
    if (siblings === undefined) family.children.set(stat.parentPid, [stat]);
    else siblings.push(stat);
  }
  return family;
}

function descendantsOf(pid: number, family: Family): ProcessStat[] {
  const self = family.self.get(pid);
  if (self === undefined) return [];
  const children = family.children.get(pid) ?? [];
  return [self, ...children.flatMap((child) => descendantsOf(child.pid, family))];
}

/** Empty for a process that has just ended. */
function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function listDirectory(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}
