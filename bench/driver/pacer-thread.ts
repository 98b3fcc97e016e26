import { parentPort, workerData } from 'node:worker_threads';
import { nowMs } from '../clock.ts';
import { dueAtMs, dueCount, type PacerMessage } from './schedule.ts';

/**
 * Says when requests are due. Timers of an event loop are a millisecond late or more, which would count as latency of
 * what is measured; a thread that does nothing else can sleep to a tenth of that.
 */
const { ratePerSecond, count } = workerData as { ratePerSecond: number; count: number };
const neverNotified = new Int32Array(new SharedArrayBuffer(4));

/** Long enough for the other side to note the times. */
const startMs = nowMs() + 50;
parentPort?.postMessage({ startMs } satisfies PacerMessage);
for (let due = 0; due < count; ) {
  const waitMs = dueAtMs(startMs, ratePerSecond, due) - nowMs();
  if (waitMs > 0) Atomics.wait(neverNotified, 0, 0, waitMs);
  const dueNow = dueCount(startMs, ratePerSecond, count, nowMs());
  if (dueNow > due) parentPort?.postMessage({ dueNow } satisfies PacerMessage);
  due = Math.max(due, dueNow);
}
