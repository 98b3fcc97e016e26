import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyBaseLogger } from 'fastify';
import { listEvents, publishingHorizonMs } from '../../features/delivery-log/events.ts';
import { ALL_UPSTREAM, EVENT_TYPES } from '../../platform/event-type.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { lowestUuidAt } from '../../platform/public-ids.ts';
import type { StreamPlaces } from './event-stream-places.ts';

/** How often PostgreSQL is asked for new events of a WABA, once for all of its streams. */
const POLL_MS = 500;
const POLL_AFTER_ERROR_MS = 2_000;

export type EventWatch = {
  /** Up to where events can be read, Unix time in ms; nothing appears before it. Waits for the first look. */
  horizonMs(): Promise<number>;
  /** Resolves when there are events behind `horizonMs`, after `maxMs`, or when `signal` is aborted. */
  changed(horizonMs: number, maxMs: number, signal: AbortSignal): Promise<void>;
  leave(): void;
};

export type EventStreams = { places: StreamPlaces; watches: ReturnType<typeof makeEventWatches> };

type Watched = {
  listeners: number;
  horizonMs: number | null;
  /** The horizon behind which the last new events were seen. */
  newsMs: number;
  wake: Set<() => void>;
};

/** One poll serves all streams of a WABA. */
export function makeEventWatches(log: FastifyBaseLogger) {
  const watched = new Map<string, Watched>();
  return {
    join(database: Database, wabaId: string): EventWatch {
      const known = watched.get(wabaId);
      const watch = known ?? { listeners: 0, horizonMs: null, newsMs: 0, wake: new Set<() => void>() };
      watch.listeners += 1;
      if (known === undefined) {
        watched.set(wabaId, watch);
        void poll(database, wabaId, watch, log);
      }
      return {
        horizonMs: async () => watch.horizonMs ?? (await publishingHorizonMs(database, wabaId)),
        changed: (horizonMs, maxMs, signal) => changed(watch, { horizonMs, maxMs, signal }),
        leave() {
          watch.listeners -= 1;
          if (watch.listeners === 0) watched.delete(wabaId);
        },
      };
    },
  };
}

async function poll(
  database: Database,
  wabaId: string,
  watch: Watched,
  log: FastifyBaseLogger,
): Promise<void> {
  let waitMs = 0;
  while (watch.listeners > 0) {
    try {
      await look(database, wabaId, watch);
      waitMs = POLL_MS;
    } catch (error) {
      log.debug({ err: error, wabaId }, 'a look for new events failed');
      waitMs = POLL_AFTER_ERROR_MS;
    }
    await sleep(waitMs, undefined, { ref: false });
  }
}

async function look(database: Database, wabaId: string, watch: Watched): Promise<void> {
  const horizonMs = await publishingHorizonMs(database, wabaId);
  const before = watch.horizonMs;
  if (before !== null && horizonMs <= before) return;
  const filter = { eventId: null, phoneNumberId: null, deliveryState: null, sinceMs: null };
  const { events } = await listEvents(
    database,
    wabaId,
    { ...filter, eventTypes: [...EVENT_TYPES, ALL_UPSTREAM], untilMs: horizonMs },
    { order: 'asc', afterId: lowestUuidAt(before ?? horizonMs), limit: 1 },
  );
  watch.horizonMs = horizonMs;
  // A stream that began before the first look may have read less far than that.
  if (events.length === 0 && before !== null) return;
  watch.newsMs = horizonMs;
  for (const wake of watch.wake) wake();
}

async function changed(
  watch: Watched,
  { horizonMs, maxMs, signal }: { horizonMs: number; maxMs: number; signal: AbortSignal },
): Promise<void> {
  if (signal.aborted || watch.newsMs > horizonMs) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const wake = (): void => resolve();
  const timer = setTimeout(wake, maxMs);
  watch.wake.add(wake);
  signal.addEventListener('abort', wake);
  await promise;
  clearTimeout(timer);
  watch.wake.delete(wake);
  signal.removeEventListener('abort', wake);
}
