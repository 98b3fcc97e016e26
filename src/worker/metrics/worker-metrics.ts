import { Counter, Gauge, Histogram, Registry } from '@prometheus-io/client';
import type { AttemptObserver, MadeAttempt } from '../../deliveries/attempt/settle-attempts.ts';
import type { SettledOutcome } from '../../deliveries/judge-outcome.ts';
import type { SendResult } from '../../deliveries/sender/http-sender.ts';
import { type CountResult, makeResultCounter } from '../../platform/metrics/metrics.ts';
import { msOfUuidV7 } from '../../platform/public-ids.ts';

/** What the parts of a worker count with; made once per process and handed to them. */
export type WorkerMetrics = {
  registry: Registry;
  attempt: AttemptObserver;
  inboxBody: CountResult<'done' | 'quarantined' | 'waiting' | 'failed'>;
  mediaDownload: CountResult<'stored' | 'failed' | 'finished' | 'later'>;
  send: CountResult<'accepted' | 'failed' | 'unknown' | 'over' | 'later'>;
};

export function makeWorkerMetrics(): WorkerMetrics {
  const registry = new Registry();
  return {
    registry,
    attempt: makeAttemptMetrics(registry),
    inboxBody: makeResultCounter(registry, {
      name: 'heliograph_inbox_bodies_total',
      help: 'Upstream bodies that were taken in; waiting: for a phone number that upstream is asked for.',
      results: ['done', 'quarantined', 'waiting', 'failed'],
    }),
    mediaDownload: makeResultCounter(registry, {
      name: 'heliograph_media_downloads_total',
      help: 'Runs that fetch inbound media; later: tried again, finished: it had ended before.',
      results: ['stored', 'failed', 'finished', 'later'],
    }),
    send: makeResultCounter(registry, {
      name: 'heliograph_sends_total',
      help: 'Runs that send a message; later: waits for its turn or is tried again, over: it had ended before.',
      results: ['accepted', 'failed', 'unknown', 'over', 'later'],
    }),
  };
}

/** Shows how many attempts the delivery loop of this process has under way. */
export function watchDeliveryLoop(registry: Registry, loop: { inFlight(): number }): void {
  new Gauge({
    name: 'heliograph_deliveries_in_flight',
    help: 'Deliveries that the delivery loop of this process holds: claimed, being sent or recorded.',
    registers: [registry],
    collect() {
      this.set(loop.inFlight());
    },
  });
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
    name: 'heliograph_webhook_attempts_total',
    help: 'Webhook attempts that were recorded, by what became of the delivery and by the answer.',
    labelNames: ['outcome', 'answer'],
    registers,
  });
  const failed = new Counter({
    name: 'heliograph_deliveries_failed_total',
    help: 'Deliveries that failed for good: by their last attempt. Test events are left out.',
    registers,
  });
  const duration = new Histogram({
    name: 'heliograph_webhook_attempt_duration_seconds',
    help: 'From the begin of an attempt to the end of its answer or its failure.',
    buckets: DURATION_BUCKETS_SECONDS,
    registers,
  });
  const latency = new Histogram({
    name: 'heliograph_webhook_delivery_latency_seconds',
    help: 'From the publication of an event to the 2xx of an endpoint, retries included, replays and tests not.',
    buckets: LATENCY_BUCKETS_SECONDS,
    registers,
  });
  const children = new Map(OUTCOMES.map((outcome) => [outcome, new Map<string, Child>()]));
  return (attempt, outcome) => {
    const state = outcome?.state ?? 'lost';
    const { result } = attempt.sent;
    const answer = answerOf(result);
    const known = children.get(state)?.get(answer);
    if (known !== undefined) known.inc();
    else {
      const child: Child = attempts.labels(state, answer);
      children.get(state)?.set(answer, child);
      child.inc();
    }
    duration.observe(result.timings.totalMs / 1_000);
    if (state === 'failed' && attempt.eventType !== 'test') failed.inc();
    if (state === 'delivered' && !attempt.replay && attempt.eventType !== 'test')
      latency.observe(latencySeconds(attempt));
  };
}

/** The class of the status, or that of the error: about 20 values in all. */
function answerOf(result: SendResult): string {
  if (result.outcome === 'error') return result.errorClass;
  return STATUS_CLASSES[Math.trunc(result.statusCode / 100)] ?? 'other';
}

/** The id of an event holds when it was published. Clocks of two machines may differ, so it may seem to be negative. */
function latencySeconds({ eventUuid, sent }: MadeAttempt): number {
  const answeredMs = sent.startedAt.getTime() + sent.result.timings.totalMs;
  return Math.max(0, answeredMs - msOfUuidV7(eventUuid)) / 1_000;
}
