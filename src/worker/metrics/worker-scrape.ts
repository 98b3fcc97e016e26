import { Counter, Gauge, type Registry } from '@prometheus-io/client';
import type { Config } from '../../platform/config/config.ts';
import { watchProcess } from '../../platform/metrics/metrics.ts';
import { makeFiguresCache, type Scrape, scrapeOf } from '../../platform/metrics/metrics-server.ts';
import { certificateFiles, watchCertificates, watchPools } from '../../platform/metrics/process-metrics.ts';
import type { Database, DatabasePool } from '../../platform/postgres/database.ts';
import type { RecentAttempts } from '../../platform/postgres/worker-processes.ts';
import type { HealthWatch } from '../health.ts';
import { readStoredFigures } from './shared-figures.ts';
import { makeSystemGauges } from './system-figures.ts';
import type { WorkerMetrics } from './worker-metrics.ts';

/** Less than a scrape may take (10 s unless set otherwise), so that the process's own figures still get through. */
const WAIT_MS = 3_000;

/** What a worker's GET /metrics returns: the process's own figures, and those that the leader stored in PostgreSQL. */
export function makeWorkerScrape(
  { registry }: WorkerMetrics,
  parts: {
    config: Pick<Config, 'api' | 'temporal'>;
    database: Database;
    pools: readonly DatabasePool[];
    loop: { inFlight(): number };
    runs: CountsRuns;
    watch: Pick<HealthWatch, 'now'>;
    sdkMetrics?: (() => Promise<string>) | undefined;
  },
): Scrape {
  const { config, database, pools, loop, runs, watch, sdkMetrics = async () => '' } = parts;
  watchProcess(registry);
  watchPools(registry, pools);
  watchCertificates(registry, certificateFiles(config));
  watchParts(registry, { loop, runs, watch });
  const show = makeSystemGauges(registry);
  const read = async () => ({ figures: await readStoredFigures(database) });
  const latest = makeFiguresCache({ read, now: () => performance.now(), waitMs: WAIT_MS });
  const scrape = scrapeOf(registry, async () => show(await latest()));
  return async () => {
    const [own, sdk] = await Promise.all([scrape(), sdkMetrics()]);
    return { ...own, text: `${own.text.trimEnd()}\n${sdk}` };
  };
}

type CountsRuns = { share: { total(): RecentAttempts } };

export function watchParts(
  registry: Registry,
  parts: { loop: { inFlight(): number }; runs: CountsRuns; watch: Pick<HealthWatch, 'now'> },
): void {
  const { loop, runs, watch } = parts;
  watchRuns(registry, runs);
  const registers = [registry];
  const loops = (name: string, help: string, key: 'turnMs' | 'sinceTurnMs' | 'failingMs') =>
    new Gauge({
      name: `heliograph_loop_${name}`,
      help,
      labelNames: ['loop'],
      registers,
      collect() {
        for (const [loop, status] of watch.now().loops) this.labels(loop).set(status[key] / 1_000);
      },
    });
  loops('turn_seconds', 'How long the turn of a loop that is under way has taken; 0: it rests.', 'turnMs');
  loops('age_seconds', 'Since the last turn of a loop ended.', 'sinceTurnMs');
  loops(
    'failing_seconds',
    'For how long all turns of a loop have failed; 0: the last went well.',
    'failingMs',
  );
  const one = (name: string, help: string, read: () => number) =>
    new Gauge({
      name: `heliograph_${name}`,
      help,
      registers,
      collect() {
        this.set(read());
      },
    });
  one(
    'deliveries_in_flight',
    'Deliveries that the delivery loop of this process holds: claimed, being sent or recorded.',
    () => loop.inFlight(),
  );
  one('listener_up', '1 while a connection listens for notifications of PostgreSQL, otherwise 0.', () =>
    watch.now().listenerDownMs === 0 ? 1 : 0,
  );
  one('temporal_up', '1 when Temporal returned its namespace to this process, otherwise 0.', () =>
    watch.now().temporalAwayMs === 0 ? 1 : 0,
  );
  one(
    'temporal_queues_unpolled',
    'Task queues of this process that nothing polls at present.',
    () => watch.now().deafMs.size,
  );
}

function watchRuns(registry: Registry, { share }: CountsRuns): void {
  new Counter({
    name: 'heliograph_delivery_attempts_by_run_total',
    help: 'Attempts that ended, by whether a workflow run of their delivery shows them (own) or only that of the delivery loop (none).',
    labelNames: ['run'],
    registers: [registry],
    collect() {
      const { attempts, withRun } = share.total();
      this.reset();
      this.labels('own').inc(withRun);
      this.labels('none').inc(attempts - withRun);
    },
  });
}
