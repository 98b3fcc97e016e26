import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** What tells one process from a later one that was given the same number. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks since boot on Linux, the `ps` start date elsewhere. */
  readonly startTime: string;
  /** Empty where the system has none. */
  readonly bootId: string;
}

/** The identity of a running process, or undefined when there is none (a zombie counts as gone). */
export function identifyProcess(pid: number): ProcessIdentity | undefined {
  const startTime = process.platform === 'linux' ? linuxStartTime(pid) : psStartTime(pid);
  return startTime === undefined ? undefined : { pid, startTime, bootId: bootId() };
}

/** Whether exactly this process still runs. */
export function isSameProcessAlive(identity: ProcessIdentity): boolean {
  const now = identifyProcess(identity.pid);
  return now !== undefined && now.startTime === identity.startTime && now.bootId === identity.bootId;
}

/** Narrows parsed JSON, which a crash or a person may have left in any state. */
export function isProcessIdentity(value: unknown): value is ProcessIdentity {
  if (typeof value !== 'object' || value === null) return false;
  const { pid, startTime, bootId: boot } = value as Record<string, unknown>;
  return (
    Number.isInteger(pid) && Number(pid) > 1 && typeof startTime === 'string' && typeof boot === 'string'
  );
}

/** The command line of a process, its arguments separated by spaces; empty when it is gone. */
export function commandLineOf(pid: number): string {
  try {
    if (process.platform === 'linux')
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
    return psField(pid, 'command=');
  } catch {
    return '';
  }
}

function linuxStartTime(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The second field is the program's name in brackets and may hold spaces; the third is the state.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields[19];
  } catch {
    return undefined;
  }
}

function psStartTime(pid: number): string | undefined {
  try {
    return psField(pid, 'lstart=').trim() || undefined;
  } catch {
    return undefined;
  }
}

function psField(pid: number, field: string): string {
  return execFileSync('ps', ['-o', field, '-p', String(pid)], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
}

function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return '';
  }
}
