import { Gauge, Registry } from '@prometheus-io/client';
import type { AttemptObserver } from '../../deliveries/attempt/settle-attempts.ts';
import { type CountResult, makeResultCounter } from '../../platform/metrics/result-counter.ts';
import { makeAttemptMetrics } from './attempt-metrics.ts';

/** What the parts of a worker count with; made once per process and handed to them. */
export type WorkerMetrics = {
  registry: Registry;
  attempt: AttemptObserver;
  inboxBody: CountResult<'done' | 'set_aside' | 'waiting' | 'failed'>;
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
      results: ['done', 'set_aside', 'waiting', 'failed'],
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
