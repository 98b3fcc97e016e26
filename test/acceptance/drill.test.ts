import { expect, test } from 'vitest';
import { reportOf } from '../drill/report.ts';
import { runDrill } from '../drill/run-drill.ts';

const OPTIONS = {
  kills: 7,
  seed: 230,
  events: 120,
  endpoints: 6,
  eventsPerSecond: 12,
  drainTimeoutMs: 180_000,
};

/** The short form of `npm run drill`, on a stack of its own; docs/drill has the long one. */
test('nothing acknowledged is lost, altered or disordered while parts are killed and frozen', async () => {
  const log: string[] = [];
  const print = (line: string) => void log.push(line);
  const result = await runDrill(OPTIONS, { print, signal: new AbortController().signal });
  const { counts } = result;
  process.stdout.write(reportOf(result));
  expect(result.ok, [...log, reportOf(result)].join('\n')).toBe(true);
  // A run in which nothing happened would prove nothing.
  expect(counts.kills).toBe(7);
  expect(counts.pauses).toBe(1);
  expect(counts.eventsAcknowledged).toBeGreaterThan(100);
  expect(counts.arrivals).toBeGreaterThan(counts.deliveriesExpected);
}, 400_000);
