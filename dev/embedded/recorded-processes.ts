import { setTimeout as delay } from 'node:timers/promises';
import { readJsonFile } from '../../src/platform/local-stack/embedded-description.ts';
import { writePrivateFile } from './kept-files.ts';
import {
  commandLineOf,
  identifyProcess,
  isProcessIdentity,
  isSameProcessAlive,
  type ProcessIdentity,
} from './process-identity.ts';

/** A process that a supervisor started, as it is written down to be found after the supervisor was killed. */
interface RecordedProcess {
  readonly name: string;
  readonly identity: ProcessIdentity;
  /** Has to appear in the process's command line, as a second proof that it is ours. */
  readonly command: string;
}

const KILL_WAIT_MS = 5_000;

/** Writes down which processes run now. */
export function recordProcesses(
  file: string,
  running: readonly { name: string; pid: number; command: string }[],
): void {
  const records = running.flatMap(({ name, pid, command }): RecordedProcess[] => {
    const identity = identifyProcess(pid);
    return identity === undefined ? [] : [{ name, identity, command }];
  });
  writePrivateFile(file, `${JSON.stringify(records, null, 2)}\n`);
}

/**
 * Stops what an earlier run left behind: asks, waits up to `graceMs`, then kills.
 * A process is touched only when its number, start time, boot and command line are those written down.
 * Returns the names of the parts that were still running.
 */
export async function stopRecordedProcesses(file: string, graceMs: number): Promise<string[]> {
  const leftovers = readRecords(file).filter(isOurs);
  // From here on the identity decides: a process that is ending has no command line any more.
  const alive = () => leftovers.filter(({ identity }) => isSameProcessAlive(identity));
  for (const { identity } of leftovers) send(identity.pid, 'SIGTERM');
  const deadline = Date.now() + graceMs;
  while (alive().length > 0 && Date.now() < deadline) await delay(50);
  for (const { identity } of alive()) {
    send(-identity.pid, 'SIGKILL');
    send(identity.pid, 'SIGKILL');
  }
  while (alive().length > 0 && Date.now() < deadline + KILL_WAIT_MS) await delay(20);
  return leftovers.map((leftover) => leftover.name);
}

function readRecords(file: string): RecordedProcess[] {
  const content = readJsonFile(file);
  return Array.isArray(content) ? content.filter(isRecord) : [];
}

function isRecord(value: unknown): value is RecordedProcess {
  if (typeof value !== 'object' || value === null) return false;
  const { name, identity, command } = value as Record<string, unknown>;
  return (
    typeof name === 'string' && typeof command === 'string' && command !== '' && isProcessIdentity(identity)
  );
}

function isOurs({ identity, command }: RecordedProcess): boolean {
  return isSameProcessAlive(identity) && commandLineOf(identity.pid).includes(command);
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It ended in the meantime, which is what was asked for.
  }
}
