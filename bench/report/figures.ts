import { type Arrival, addressOf, type RunPlan, type RunTimes } from '../run-plan.ts';
import type { Scenario } from '../scenarios.ts';
import type { Usage } from '../usage-window.ts';
import { checkDeliveries, expectedEvents } from './delivery-check.ts';
import { type Percentiles, percentilesOf } from './percentiles.ts';

/** What was measured in one scenario. Times in ms, memory in MiB; latencies count from the planned time of sending. */
export type Figures = {
  scenario: string;
  endpoints: number;
  /** Bodies per second that were planned; null: as fast as they were taken. */
  ratePerSecond: number | null;
  bodies: number;
  /** Events that came. */
  events: number;
  /** Upstream body in until the receiver has the event. */
  latencyMs: Percentiles;
  /** The same for the lead-in, which the other latencies leave out. */
  leadInLatencyMs: Percentiles;
  /** Upstream body in until the ingress answered. */
  acknowledgementMs: Percentiles;
  /** How late the driver itself sent: part of both latencies. */
  sendLagMs: Percentiles;
  eventsPerSecond: number;
  bodiesPerSecond: number;
  /** Acknowledged events that had not come when the last body was answered. */
  backlog: number;
  missing: number;
  duplicates: number;
  retriedDuplicates: number;
  orderViolations: number;
  /** Bodies that were not answered 200. */
  notAcknowledged: number;
  /** How many bodies were answered with each status; 0: no answer. */
  answers: Record<string, number>;
  cpuMsPerEvent: Record<string, number>;
  /** Share of the machine, 0 to 1, that other programs took: above some hundredths the figures are not to be trusted. */
  othersCpuShare: number;
  rssPeakMib: Record<string, number>;
  postgresPssMib: number;
  notes: string[];
};

type Measured = {
  scenario: Scenario;
  plan: RunPlan;
  times: RunTimes;
  arrivals: readonly Arrival[];
  /** Distinct webhooks that had come when the last body was answered. */
  cameBySendEnd: number;
  usage: Usage;
  /** Length of the time in which `usage` was measured. */
  windowMs: number;
  cpuCount: number;
  notes: readonly string[];
};

/** Turns raw times into the figures that are shown. */
export function figuresOf(measured: Measured): Figures {
  const { scenario, plan, times, arrivals, usage } = measured;
  const check = checkDeliveries(plan, times, arrivals);
  const good = Array.from({ length: plan.count }, (_, n) => n).filter((n) => !addressOf(plan, n).isBad);
  const acknowledged = good.filter((n) => times.status[n] === 200);
  const counted = (n: number) => n >= plan.leadIn;
  const latency = ({ n, arrivedMs }: { n: number; arrivedMs: number }) => arrivedMs - scheduled(n);
  const scheduled = (n: number) => times.scheduledMs[n] ?? 0;
  const startMs = scheduled(0);
  const lastArrivalMs = Math.max(...[startMs], ...lastOf(check.first.map(({ arrivedMs }) => arrivedMs)));
  const lastAnswerMs = times.answeredMs.reduce((last, ms) => Math.max(last, ms), startMs);
  const expected = expectedEvents(plan, (n) => times.status[n] === 200);
  const perEvent = (ms: number) => (check.first.length === 0 ? Number.NaN : ms / check.first.length);
  return {
    scenario: scenario.name,
    endpoints: scenario.endpoints,
    ratePerSecond: scenario.ratePerSecond,
    bodies: plan.count,
    events: check.first.length,
    latencyMs: percentilesOf(check.first.filter(({ n }) => counted(n)).map(latency)),
    leadInLatencyMs: percentilesOf(check.first.filter(({ n }) => !counted(n)).map(latency)),
    acknowledgementMs: percentilesOf(
      acknowledged.filter(counted).map((n) => (times.answeredMs[n] ?? 0) - scheduled(n)),
    ),
    sendLagMs: percentilesOf(good.filter(counted).map((n) => (times.sentMs[n] ?? 0) - scheduled(n))),
    eventsPerSecond: perSecond(check.first.length, lastArrivalMs - startMs),
    bodiesPerSecond: perSecond(acknowledged.length, lastAnswerMs - startMs),
    backlog: Math.max(0, expected - measured.cameBySendEnd),
    missing: check.missing,
    duplicates: check.duplicates,
    retriedDuplicates: check.retriedDuplicates,
    orderViolations: check.orderViolations,
    notAcknowledged: times.status.reduce((sum, status) => sum + (status === 200 ? 0 : 1), 0),
    answers: countBy(times.status),
    cpuMsPerEvent: mapValues(usage.cpuMs, perEvent),
    othersCpuShare: usage.othersCpuMs / (measured.windowMs * measured.cpuCount),
    rssPeakMib: usage.rssPeakMib,
    postgresPssMib: usage.postgresPssMib,
    notes: [...measured.notes],
  };
}

function lastOf(values: readonly number[]): number[] {
  return values.length === 0 ? [] : [values.reduce((last, value) => Math.max(last, value))];
}

function countBy(values: Iterable<number>): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const value of values) counts[value] = (counts[value] ?? 0) + 1;
  return counts;
}

function perSecond(count: number, ms: number): number {
  return ms <= 0 ? Number.NaN : (count * 1000) / ms;
}

function mapValues(values: Readonly<Record<string, number>>, change: (value: number) => number) {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, change(value)]));
}
