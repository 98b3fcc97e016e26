import { cpus } from 'node:os';
import { Counter, Histogram, Registry } from '@prometheus-io/client';
import type { MadeAttempt } from '../../engine/deliveries/attempt/made-attempt.ts';
import type { AttemptObserver } from '../../engine/deliveries/attempt/settle-attempts.ts';
import { filteredDeliveries } from '../../engine/deliveries/content-filter.ts';
import type { SettledOutcome } from '../../engine/deliveries/judge-outcome.ts';
import type { DeliveryLabel } from '../../engine/queue/claim.ts';
import { type CountOutcome, makeOutcomeCounter, tracing } from '../../platform/metrics/metrics.ts';
import type { WorkerPeers } from '../../platform/postgres/worker-processes.ts';
import { msOfUuidV7, publicDeliveryId } from '../../platform/public-ids.ts';
import type { SendResult } from '../../platform/sender/http-sender.ts';

export type WorkerMetrics = {
  registry: Registry;
  attempt: AttemptObserver;
  inboxBody: CountOutcome<'done' | 'quarantined' | 'waiting' | 'failed'>;
  mediaDownload: CountOutcome<'stored' | 'failed' | 'finished' | 'retrying'>;
  send: CountOutcome<'accepted' | 'failed' | 'unknown' | 'finished' | 'retrying'>;
};

export function makeWorkerMetrics(): WorkerMetrics {
  const registry = new Registry();
  countFilteredDeliveries(registry);
  return {
    registry,
    attempt: makeAttemptMetrics(registry),
    inboxBody: makeOutcomeCounter(registry, {
      name: 'heliograph_inbox_bodies_total',
      help: 'Upstream bodies by the outcome of intake; waiting: for a phone number that upstream has yet to confirm.',
      outcomes: ['done', 'quarantined', 'waiting', 'failed'],
    }),
    mediaDownload: makeOutcomeCounter(registry, {
      name: 'heliograph_media_downloads_total',
      help: 'Runs that fetch inbound media; retrying: tried again, finished: it had ended before.',
      outcomes: ['stored', 'failed', 'finished', 'retrying'],
    }),
    send: makeOutcomeCounter(registry, {
      name: 'heliograph_sends_total',
      help: 'Runs that send a message; retrying: waits or is tried again, finished: it had ended before.',
      outcomes: ['accepted', 'failed', 'unknown', 'finished', 'retrying'],
    }),
  };
}

function countFilteredDeliveries(registry: Registry): void {
  const filtered = new Counter({
    name: 'heliograph_deliveries_filtered_total',
    help: 'Events that were not sent to an endpoint because its content filter does not take them.',
    registers: [registry],
  });
  filteredDeliveries.note = () => filtered.inc();
}

/** Up to the time-out of an attempt, which is 20 s at most. */
const DURATION_BUCKETS_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20];

/** From a calm moment to the last retry of the usual schedule. */
const LATENCY_BUCKETS_SECONDS = [
  ...[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
  ...[60, 300, 1_800, 7_200, 43_200, 259_200],
];

/** `lost`: the claim was no longer this process's when the attempt was recorded. */
type Outcome = SettledOutcome['state'] | 'lost';

const OUTCOMES: readonly Outcome[] = ['delivered', 'failed', 'retrying', 'deferred', 'lost'];
const STATUS_CLASSES = ['other', '1xx', '2xx', '3xx', '4xx', '5xx'];

type Child = { inc(): void };

/** Counts webhook attempts and their times. It runs 2,000 times a second: nothing is made in it but what is new. */
export function makeAttemptMetrics(registry: Registry): AttemptObserver {
  const registers = [registry];
  const attempts = new Counter({
    name: 'heliograph_delivery_attempts_total',
    help: 'Delivery attempts by outcome, and by the class of the status or of the error.',
    labelNames: ['outcome', 'status'],
    registers,
  });
  const failed = new Counter({
    name: 'heliograph_deliveries_failed_total',
    help: 'Deliveries whose last attempt has failed, without test events.',
    registers,
  });
  const duration = new Histogram({
    name: 'heliograph_delivery_attempt_duration_seconds',
    help: 'From the start of an attempt to the end of the response, or to the error.',
    buckets: DURATION_BUCKETS_SECONDS,
    registers,
  });
  const latency = new Histogram({
    name: 'heliograph_delivery_latency_seconds',
    help: 'From the publication of an event to the 2xx of the endpoint, with retries, without replays and test events.',
    buckets: LATENCY_BUCKETS_SECONDS,
    registers,
  });
  const children = new Map(OUTCOMES.map((outcome) => [outcome, new Map<string, Child>()]));
  return (attempt, outcome) => {
    const state = outcome?.state ?? 'lost';
    const { result } = attempt.sent;
    const status = statusOf(result);
    const known = children.get(state)?.get(status);
    if (known !== undefined) known.inc();
    else {
      const child: Child = attempts.labels(state, status);
      children.get(state)?.set(status, child);
      child.inc();
    }
    duration.observe(result.timings.totalMs / 1_000);
    if (state === 'failed' && attempt.eventType !== 'test') failed.inc();
    if (state === 'delivered' && !attempt.replay && attempt.eventType !== 'test')
      latency.observe(latencySeconds(attempt));
  };
}

/** For traces: the request, and how long it took to record what came of it. */
export function noteAttempt(attempt: MadeAttempt, outcome: SettledOutcome | null): void {
  if (tracing.note === null) return;
  const { sent, endpoint, eventType, eventId, eventUuid, deliveryId, attempts, workflowId } = attempt;
  const about = [{ wabaId: endpoint.wabaId, type: eventType, eventId, uuid: eventUuid }];
  const startMs = sent.startedAt.getTime();
  const endMs = startMs + sent.result.timings.totalMs;
  const delivery = { endpoint_id: endpoint.id, delivery: publicDeliveryId(deliveryId) };
  const status = statusOf(sent.result);
  const attributes = { ...delivery, attempt: attempts + 1, response: status, workflow_id: workflowId };
  const failed = status === '2xx' ? undefined : status;
  tracing.note({ name: 'attempt', about, startMs, endMs, attributes, failed });
  const state = { ...delivery, outcome: outcome?.state ?? 'lost' };
  tracing.note({ name: 'record', about, startMs: endMs, endMs: Date.now(), attributes: state });
}

/** For traces. The label does not say which of several orders of a catalog, or tests, it is about. */
export function noteStart(
  label: DeliveryLabel,
  { startMs, workflowId }: { startMs: number; workflowId: string },
): void {
  const { eventType: type, eventId, wabaId } = label;
  if (type === 'order' || type === 'test') return;
  const attributes = { workflow_id: workflowId, endpoint_id: label.endpointId };
  const about = [{ wabaId, type, eventId }];
  tracing.note?.({ name: 'start workflow deliverEvent', about, startMs, endMs: Date.now(), attributes });
}

/** The class of the status, or that of the error: about 20 values in all. */
function statusOf(result: SendResult): string {
  if (result.outcome === 'error') return result.errorClass;
  return STATUS_CLASSES[Math.trunc(result.statusCode / 100)] ?? 'other';
}

/** The id of an event holds when it was published. Clocks of two machines may differ, so it may seem to be negative. */
function latencySeconds({ eventUuid, sent }: MadeAttempt): number {
  const answeredMs = sent.startedAt.getTime() + sent.result.timings.totalMs;
  return Math.max(0, answeredMs - msOfUuidV7(eventUuid)) / 1_000;
}

type Load = {
  /** Share of the time in which the event loop of this process was busy. */
  eventLoop: number;
  /** Share of its time in which this machine had nothing to do. */
  machineIdle: number;
};

export function watchLoad(windowMs = 1_000): () => Load {
  let atMs = performance.now();
  let loopBefore = performance.eventLoopUtilization();
  let machineBefore = machineTimes();
  let load: Load = { eventLoop: 0, machineIdle: 1 };
  return () => {
    const nowMs = performance.now();
    if (nowMs - atMs < windowMs) return load;
    const [loop, machine] = [performance.eventLoopUtilization(), machineTimes()];
    const eventLoop = performance.eventLoopUtilization(loop, loopBefore).utilization;
    const machineMs = machine.all - machineBefore.all;
    load = { eventLoop, machineIdle: machineMs > 0 ? (machine.idle - machineBefore.idle) / machineMs : 1 };
    [atMs, loopBefore, machineBefore] = [nowMs, loop, machine];
    return load;
  };
}

function machineTimes(): { idle: number; all: number } {
  const times = cpus().map((core) => core.times);
  const all = times.flatMap((ms) => Object.values(ms)).reduce((sum, ms) => sum + ms, 0);
  return { idle: times.reduce((sum, ms) => sum + ms.idle, 0), all };
}

const BUSY = 0.8;
const NO_ROOM = 0.1;

/**
 * Whether deliveries are better left to other workers: this one is busy, and the others have processors to themselves.
 * Where all share a machine that has nothing left, passing deliveries on costs more than it gains.
 */
export function leavesToOthers(
  { count, isElsewhere }: WorkerPeers,
  { eventLoop, machineIdle }: Load,
): boolean {
  return count > 1 && eventLoop > BUSY && (isElsewhere || machineIdle > NO_ROOM);
}
