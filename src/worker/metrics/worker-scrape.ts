import { makeFiguresCache } from '../../platform/metrics/figures-cache.ts';
import { type Scrape, scrapeOf } from '../../platform/metrics/metrics-answer.ts';
import { watchProcess } from '../../platform/metrics/process-metrics.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { readSystemFigures } from './system-figures.ts';
import { makeSystemGauges } from './system-gauges.ts';
import { type WorkerMetrics, watchDeliveryLoop } from './worker-metrics.ts';

/** Less than a scrape may take (10 s unless set otherwise), so that the process's own figures still get through. */
const WAIT_MS = 3_000;

/** A scrape must not become what the database is busy with. */
const STATEMENT_TIMEOUT_MS = 2_000;

/** What a worker's GET /metrics answers: the process's own figures, and what PostgreSQL knows when it answers. */
export function makeWorkerScrape(
  { registry }: WorkerMetrics,
  { database, loop }: { database: Database; loop: { inFlight(): number } },
): Scrape {
  watchProcess(registry);
  watchDeliveryLoop(registry, loop);
  const show = makeSystemGauges(registry);
  const read = () => readSystemFigures(database, STATEMENT_TIMEOUT_MS);
  const latest = makeFiguresCache({ read, now: () => performance.now(), waitMs: WAIT_MS });
  return scrapeOf(registry, async () => show(await latest()));
}
