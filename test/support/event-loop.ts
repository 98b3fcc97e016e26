import { monitorEventLoopDelay } from 'node:perf_hooks';
import { onTestFinished } from 'vitest';

/** Watches the event loop of this process until the test ends; returns what to say of it where a time was missed. */
export function watchEventLoop(): () => string {
  const delay = monitorEventLoopDelay({ resolution: 10 });
  delay.enable();
  onTestFinished(() => void delay.disable());
  const inMs = (nanoseconds: number) => Math.round(nanoseconds / 1e6);
  return () =>
    `the test's own event loop was late by ${inMs(delay.max)} ms at most, ${inMs(delay.percentile(99))} ms at p99`;
}
