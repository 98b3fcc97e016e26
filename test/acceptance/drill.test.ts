import { expect, test } from 'vitest';
import { reportOf } from '../drill/report.ts';
import { runDrill } from '../drill/run-drill.ts';

const OPTIONS = {
  seed: 230,
  endpoints: 6,
  eventsPerSecond: 12,
  drainTimeoutMs: 180_000,
  temporalAwayPercent: 0,
};

/** The short form of `npm run drill`, on a stack of its own; docs/contributors/drill has the long one. */
test.each([
  { processes: 'one' as const, kills: 7, events: 120 },
  { processes: 'two' as const, kills: 4, events: 80 },
])(
  'nothing acknowledged is lost, altered or disordered while parts are killed and frozen; API and worker in $processes',
  async (mode) => {
    const log: string[] = [];
    const print = (line: string) => void log.push(line);
    const result = await runDrill({ ...OPTIONS, ...mode }, { print, signal: new AbortController().signal });
    const { counts } = result;
    process.stdout.write(reportOf(result));
    expect(result.ok, [...log, reportOf(result)].join('\n')).toBe(true);
    // A run in which nothing happened would prove nothing.
    expect(counts.kills).toBe(mode.kills);
    expect(counts.pauses).toBe(1);
    expect(counts.eventsAcknowledged).toBeGreaterThan(0.8 * mode.events);
    expect(counts.arrivals).toBeGreaterThan(counts.deliveriesExpected);
  },
  400_000,
);
