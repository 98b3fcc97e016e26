import { readdirSync, readFileSync } from 'node:fs';
import { setPriority } from 'node:os';

/** Behind everything at the usual 0; the least (19) lets the heap grow by 100 MiB in a flood, because collections wait. */
const NICENESS = 5;

/**
 * Has V8's helper threads, which compile and collect beside the event loop, give way to everything that a request waits for:
 * on two cores four of them keep PostgreSQL and the event loop from running for tens of ms
 * (docs/decisions/0033-what-stalls-a-busy-worker.md). Linux only; elsewhere, and where it is not allowed, nothing changes.
 */
export function lowerHelperThreads(): void {
  try {
    for (const threadId of readdirSync('/proc/self/task')) {
      const name = readFileSync(`/proc/self/task/${threadId}/comm`, 'utf8');
      if (name.startsWith('V8Worker')) setPriority(Number(threadId), NICENESS);
    }
  } catch {
    // It is only slower so.
  }
}
