import { expect, test } from 'vitest';
import type { Figures } from '../../../bench/report/figures.ts';
import { judgeTargets } from '../../../bench/report/targets.ts';

function figures(scenario: string, latencyMs: { p50: number; p95: number }, eventsPerSecond = 0): Figures {
  const percentiles = { ...latencyMs, p99: latencyMs.p95, max: latencyMs.p95 };
  return {
    scenario,
    endpoints: 1,
    ratePerSecond: 200,
    bodies: 1,
    events: 1,
    latencyMs: percentiles,
    worstSecondP95Ms: 0,
    retriedAfterMs: percentiles,
    acknowledgementMs: percentiles,
    sendLagMs: percentiles,
    eventsPerSecond,
    bodiesPerSecond: 0,
    backlog: 0,
    missing: 0,
    duplicates: 0,
    retriedDuplicates: 0,
    orderViolations: 0,
    notAcknowledged: 0,
    answers: {},
    cpuMsPerEvent: {},
    othersCpuShare: 0,
    productAtRestMib: 0,
    productPeakMib: 0,
    rssPeakMib: {},
    postgresPssMib: 0,
    notes: [],
  };
}

test('a target is judged once all scenarios that it takes have run', () => {
  const single = figures('message-200', { p50: 2.5, p95: 6 });
  expect(judgeTargets([single]).map(({ about, isMet }) => [about, isMet])).toEqual([
    ['200 per second: p50', true],
    ['200 per second: p95', false],
  ]);
  const many = figures('message-200-x100', { p50: 3, p95: 7.2 });
  expect(judgeTargets([single, many]).at(-1)).toEqual({
    about: 'message-200 over 100 endpoints: p95 beside that of one',
    wanted: 'at most 1.2 times',
    measured: '1.20 times',
    isMet: true,
  });
});

test('a throughput has to be at least what is wanted', () => {
  const flood = (rate: number) => figures('flood', { p50: 0, p95: 0 }, rate);
  const floor = figures('floor', { p50: 0, p95: 0 }, 1_000);
  const judged = (rate: number) =>
    judgeTargets([flood(rate), floor]).find(({ about }) => about === 'flood beside the floor');
  expect(judged(800)?.isMet).toBe(true);
  expect(judged(799)?.isMet).toBe(false);
});

test('a retry is late from the longest wait on that the schedule allows', () => {
  const judged = (p95: number) => judgeTargets([figures('retry-storm', { p50: 0, p95 })])[0];
  expect(judged(5_500)).toMatchObject({ measured: '0.00 ms', isMet: true });
  expect(judged(16_001)).toMatchObject({ isMet: false });
});
