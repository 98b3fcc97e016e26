import { Registry } from '@prometheus-io/client';
import { describe, expect, test } from 'vitest';
import type { MadeAttempt } from '../../../../src/engine/deliveries/attempt/made-attempt.ts';
import type { SettledOutcome } from '../../../../src/engine/deliveries/judge-outcome.ts';
import { uuidV7 } from '../../../../src/platform/public-ids.ts';
import type { SendResult } from '../../../../src/platform/sender/http-sender.ts';
import { makeAttemptMetrics } from '../../../../src/worker/metrics/worker-metrics.ts';
import { counted, samplesOf } from '../../../support/metrics-text.ts';
import { madeAttempt } from '../../deliveries/made-attempts.ts';
import { failure, response } from '../../deliveries/send-results.ts';

const NAME = 'heliograph_delivery_attempts_total';
const LATENCY = 'heliograph_delivery_latency_seconds';

const DELIVERED: SettledOutcome = { state: 'delivered', statusCode: 200, attempt: 1 };
const RETRYING: SettledOutcome = {
  state: 'retrying',
  reason: 'x',
  attempt: 1,
  delayMs: 1,
  isExtra: false,
  run: null,
};

function observed(result: SendResult, outcome: SettledOutcome | null, more: Partial<MadeAttempt> = {}) {
  const registry = new Registry();
  const observe = makeAttemptMetrics(registry);
  observe({ ...madeAttempt(result), ...more }, outcome);
  return registry.metrics();
}

describe('attempts', () => {
  test.each([
    [response(204), DELIVERED, '{outcome="delivered",status="2xx"}'],
    [response(302), RETRYING, '{outcome="retrying",status="3xx"}'],
    [
      response(410),
      { state: 'deferred', reason: 'x', attempt: 1, run: null } as const,
      '{outcome="deferred",status="4xx"}',
    ],
    [response(503), { state: 'failed', reason: 'x', attempt: 1 } as const, '{outcome="failed",status="5xx"}'],
    [failure('timeout'), RETRYING, '{outcome="retrying",status="timeout"}'],
    [response(200), null, '{outcome="lost",status="2xx"}'],
    [response(999), RETRYING, '{outcome="retrying",status="other"}'],
  ])('are counted by outcome and status: %#', async (result, outcome, series) => {
    expect(counted(await observed(result, outcome), NAME)).toEqual({ [series]: 1 });
  });

  test('whatever receivers answer, the series stay few', async () => {
    const registry = new Registry();
    const observe = makeAttemptMetrics(registry);
    for (let status = 0; status < 1_100; status += 1) observe(madeAttempt(response(status)), RETRYING);
    expect(Object.keys(counted(await registry.metrics(), NAME))).toHaveLength(6);
  });

  test('are told when they were the last of a delivery; the test event has one only, so it tells nothing', async () => {
    const registry = new Registry();
    const observe = makeAttemptMetrics(registry);
    const failed = async () =>
      samplesOf(await registry.metrics()).get('heliograph_deliveries_failed_total') ?? 0;
    const attempt = madeAttempt(response(500));
    observe(attempt, RETRYING);
    observe({ ...attempt, eventType: 'test' }, { state: 'failed', reason: 'x', attempt: 1 });
    expect(await failed()).toBe(0);
    observe(attempt, { state: 'failed', reason: 'x', attempt: 3 });
    expect(await failed()).toBe(1);
  });

  test('have their time in seconds', async () => {
    const samples = samplesOf(await observed(response(200, { totalMs: 80 }), DELIVERED));
    expect(samples.get('heliograph_delivery_attempt_duration_seconds_sum')).toBeCloseTo(0.08);
    expect(samples.get('heliograph_delivery_attempt_duration_seconds_bucket{le="0.05"}')).toBe(0);
    expect(samples.get('heliograph_delivery_attempt_duration_seconds_bucket{le="0.1"}')).toBe(1);
  });
});

describe('the latency of a delivery', () => {
  const at = (ms: number) => new Date(Date.UTC(2026, 10, 21) + ms);

  test('counts from the publication of the event, retries included, to the end of the answer', async () => {
    const attempt = madeAttempt(response(200, { totalMs: 250 }));
    const sent = { ...attempt.sent, startedAt: at(30_000) };
    const text = await observed(attempt.sent.result, DELIVERED, {
      sent,
      eventUuid: uuidV7(at(0).getTime()),
    });
    expect(samplesOf(text).get(`${LATENCY}_sum`)).toBeCloseTo(30.25);
  });

  test('is never negative, however the clocks of two machines differ', async () => {
    const text = await observed(response(200), DELIVERED, { eventUuid: uuidV7(Date.now() + 60_000) });
    expect(samplesOf(text).get(`${LATENCY}_sum`)).toBe(0);
    expect(samplesOf(text).get(`${LATENCY}_count`)).toBe(1);
  });

  test.each([
    ['a replay', { replay: true }, DELIVERED],
    ['a test event', { eventType: 'test' }, DELIVERED],
    ['what is not delivered yet', {}, RETRYING],
  ] as const)('leaves out %s', async (_what, more, outcome) => {
    expect(samplesOf(await observed(response(200), outcome, more)).get(`${LATENCY}_count`)).toBe(0);
  });
});
