import type { Arrival, RunPlan, RunTimes } from '../run-plan.ts';
import type { Scenario } from '../scenarios.ts';
import type { Usage } from '../usage-window.ts';
import { checkDeliveries, type DeliveryCheck, expectedEvents } from './delivery-check.ts';
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
  /** Upstream body in until the receiver has the event, from the first body on. */
  latencyMs: Percentiles;
  /** The highest 95th percentile of the seconds of the run. */
  worstSecondP95Ms: number;
  /** How long after an attempt that was refused on purpose the next one came. */
  retriedAfterMs: Percentiles;
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
  /** API and workers together, before the first body and at their peak. */
  productAtRestMib: number;
  productPeakMib: number;
  rssPeakMib: Record<string, number>;
  postgresPssMib: number;
  notes: string[];
};

type Sent = { plan: RunPlan; times: RunTimes };

type Measured = {
  scenario: Scenario;
  sent: Sent;
  /** What has to arrive: `sent`, and the noise where it has to. */
  awaited: readonly Sent[];
  arrivals: readonly Arrival[];
  /** Webhooks that had come when the last body was answered. */
  cameBySendEnd: number;
  usage: Usage;
  productAtRestMib: number;
  /** Length of the time in which `usage` was measured. */
  windowMs: number;
  cpuCount: number;
  notes: readonly string[];
};

/** Turns raw times into the figures that are shown. */
export function figuresOf(measured: Measured): Figures {
  const { scenario, sent, awaited, arrivals, usage } = measured;
  const { plan, times } = sent;
  const checks = awaited.map((one) => checkDeliveries(one.plan, one.times, arrivals));
  const [{ first, retriedAfterMs } = NOTHING] = checks;
  const sum = (of: (check: DeliveryCheck) => number) => checks.reduce((total, one) => total + of(one), 0);
  const events = sum((check) => check.first.length);
  const expected = awaited.reduce((total, one) => total + expectedEvents(one.plan, one.times), 0);
  return {
    scenario: scenario.name,
    endpoints: plan.targets.length,
    ratePerSecond: scenario.ratePerSecond,
    bodies: plan.count,
    events,
    ...timesOf(sent, first),
    retriedAfterMs: percentilesOf(retriedAfterMs),
    backlog: Math.max(0, expected - measured.cameBySendEnd),
    missing: sum(({ missing }) => missing),
    duplicates: sum(({ duplicates }) => duplicates),
    retriedDuplicates: sum(({ retriedDuplicates }) => retriedDuplicates),
    orderViolations: sum(({ orderViolations }) => orderViolations),
    notAcknowledged: times.status.reduce((total, status) => total + (status === 200 ? 0 : 1), 0),
    answers: countBy(times.status),
    cpuMsPerEvent: mapValues(usage.cpuMs, (ms) => (events === 0 ? Number.NaN : ms / events)),
    othersCpuShare: usage.othersCpuMs / (measured.windowMs * measured.cpuCount),
    productAtRestMib: measured.productAtRestMib,
    productPeakMib: usage.productPeakMib,
    rssPeakMib: usage.rssPeakMib,
    postgresPssMib: usage.postgresPssMib,
    notes: [...measured.notes],
  };
}

const NOTHING: Pick<DeliveryCheck, 'first' | 'retriedAfterMs'> = { first: [], retriedAfterMs: [] };

type TimeFigures = Pick<
  Figures,
  'latencyMs' | 'worstSecondP95Ms' | 'acknowledgementMs' | 'sendLagMs' | 'eventsPerSecond' | 'bodiesPerSecond'
>;

function timesOf({ plan, times }: Sent, first: DeliveryCheck['first']): TimeFigures {
  const scheduled = (n: number) => times.scheduledMs[n] ?? 0;
  const startMs = scheduled(0);
  const all = Array.from({ length: plan.count }, (_, n) => n);
  const acknowledged = all.filter((n) => times.status[n] === 200);
  const latencies = first.map(({ n, arrivedMs }) => ({ n, ms: arrivedMs - scheduled(n) }));
  const lastArrivalMs = first.reduce((last, { arrivedMs }) => Math.max(last, arrivedMs), startMs);
  const lastAnswerMs = times.answeredMs.reduce((last, ms) => Math.max(last, ms), startMs);
  const second = (n: number) => Math.floor((scheduled(n) - startMs) / 1_000);
  const bySecond = Map.groupBy(latencies, ({ n }) => second(n)).values();
  const msOf = (some: readonly { ms: number }[]) => some.map(({ ms }) => ms);
  return {
    latencyMs: percentilesOf(msOf(latencies)),
    worstSecondP95Ms: Math.max(...[...bySecond].map((some) => percentilesOf(msOf(some)).p95)),
    acknowledgementMs: percentilesOf(acknowledged.map((n) => (times.answeredMs[n] ?? 0) - scheduled(n))),
    sendLagMs: percentilesOf(all.map((n) => (times.sentMs[n] ?? 0) - scheduled(n))),
    eventsPerSecond: perSecond(first.length, lastArrivalMs - startMs),
    bodiesPerSecond: perSecond(acknowledged.length, lastAnswerMs - startMs),
  };
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
