import { describe, expect, test } from 'vitest';
import packageJson from '../../../../package.json' with { type: 'json' };
import { makeApiMetrics } from '../../../../src/api/api-metrics.ts';
import { RunShare } from '../../../../src/engine/deliveries/loop/run-share.ts';
import { counted as countedActivity, watchProcess } from '../../../../src/platform/metrics/metrics.ts';
import { watchCertificates, watchPools } from '../../../../src/platform/metrics/process-metrics.ts';
import { makeSystemGauges, type SystemFigures } from '../../../../src/worker/metrics/system-figures.ts';
import { makeWorkerMetrics } from '../../../../src/worker/metrics/worker-metrics.ts';
import { watchParts } from '../../../../src/worker/metrics/worker-scrape.ts';
import { counted, samplesOf } from '../../../support/metrics-text.ts';
import { repositoryFile } from '../../deployment/compose-file.ts';

/** All labels that there may be: none of them may name a tenant, an endpoint or an event. */
const LABELS = [
  'certificate',
  'le',
  'key_id',
  'loop',
  'pool',
  'mode',
  'operation',
  'outcome',
  'run',
  'state',
  'status',
  'step',
  'version',
];

const FIGURES: SystemFigures = {
  openDeliveries: { due: 3, retrying: 1 },
  oldestOpenSeconds: 9,
  oldestDueSeconds: 2.5,
  endpoints: { open: 4, paused: 1 },
  inboxBacklog: 6,
  inboxOldestSeconds: 0.5,
  inboxFailed: 1,
  storedSecrets: { k1: 4, k2: 9 },
  housekeepingFailingSeconds: { partitions: 0, retention: 90 },
  inboxAwaitingNumber: 2,
  quotaUsedRatio: 0.5,
  defaultPartitionRows: 0,
  partitionDays: 8,
  invalidIndexes: 0,
  apiKeysExpiring: 0,
  wabasWithProblem: 0,
  inboxAwaitingNumberSeconds: 12,
};

function fullRegistries() {
  const worker = makeWorkerMetrics();
  const loop = { inFlight: () => 17 };
  const parts = { temporalAwayMs: 0, listenerDownMs: 0, loops: new Map(), deafMs: new Map() };
  const now = () => ({ isStopping: false, hasStarted: true, ...parts });
  const share = new RunShare();
  for (const hasRun of [true, false, false]) share.note(hasRun);
  watchParts(worker.registry, { loop, runs: { share }, watch: { now } });
  watchPools(worker.registry, []);
  watchCertificates(worker.registry, new Map());
  const show = makeSystemGauges(worker.registry);
  const api = makeApiMetrics();
  watchProcess(api.registry);
  return { worker, api, show };
}

describe('the metrics of worker and API', () => {
  test('are named as the guide-lines of Prometheus ask, with labels of few values', async () => {
    const { worker, api, show } = fullRegistries();
    show({ figures: FIGURES });
    for (const { name, help, type, labels } of [
      ...describeAll(worker.registry),
      ...describeAll(api.registry),
    ]) {
      expect(help, name).not.toBe('');
      expect(name.endsWith('_total'), name).toBe(type === 'counter');
      if (type === 'histogram') expect(name).toMatch(/_seconds$/);
      expect(
        labels.filter((label) => !LABELS.includes(label)),
        name,
      ).toEqual([]);
    }
  });

  test('are all explained in docs/operators/monitoring.md', () => {
    const { worker, api } = fullRegistries();
    const document = repositoryFile('docs/operators/monitoring.md');
    const names = [...describeAll(worker.registry), ...describeAll(api.registry)].map(({ name }) => name);
    const missing = names.filter((name) => !document.includes(`\`${name.replace('heliograph_', '')}\``));
    expect(names.length).toBeGreaterThan(15);
    expect(missing).toEqual([]);
  });

  test('say which version runs, and what processor, memory and event loop do', async () => {
    const { api } = fullRegistries();
    const samples = samplesOf(await api.registry.metrics());
    expect([...samples.keys()]).toContain(`heliograph_build_info{version="${packageJson.version}"}`);
    for (const name of ['process_cpu_seconds_total', 'process_resident_memory_bytes']) {
      expect(samples.get(name), name).toBeGreaterThan(0);
    }
    expect([...samples.keys()]).toContain('nodejs_eventloop_lag_p99_seconds');
  });

  test('show what the session holds at the moment of the scrape', async () => {
    const { worker } = fullRegistries();
    const samples = samplesOf(await worker.registry.metrics());
    expect(samples.get('heliograph_deliveries_in_flight')).toBe(17);
  });

  test('show how many attempts have a run of their own, the same at each scrape', async () => {
    const { worker } = fullRegistries();
    for (let scrape = 0; scrape < 2; scrape += 1)
      expect(counted(await worker.registry.metrics(), 'heliograph_delivery_attempts_by_run_total')).toEqual({
        '{run="own"}': 1,
        '{run="none"}': 2,
      });
  });

  test('have every known result from the start, so that a first failure shows as an increase', async () => {
    const { worker } = fullRegistries();
    const samples = samplesOf(await worker.registry.metrics());
    expect(samples.get('heliograph_inbox_bodies_total{outcome="failed"}')).toBe(0);
    worker.inboxBody('failed');
    expect(counted(await worker.registry.metrics(), 'heliograph_inbox_bodies_total')).toEqual({
      '{outcome="failed"}': 1,
    });
  });
});

test('what HeliographDown knows processes by is there from the start, of workers or of APIs alone', async () => {
  const { worker, api } = fullRegistries();
  const rules = repositoryFile('charts/heliograph/files/alert-rules.yaml');
  const down = /alert: HeliographDown\n *expr: (.*)/.exec(rules)?.[1] ?? '';
  const known = [...down.matchAll(/absent\((\w+)\)/g)].map(([, metric = '']) => metric);
  const names = async (registry: { metrics(): Promise<string> }) =>
    [...samplesOf(await registry.metrics()).keys()].map((series) => series.replace(/\{.*/, ''));
  const [ofWorker, ofApi] = [await names(worker.registry), await names(api.registry)];
  const owners = (metric: string) => [ofWorker.includes(metric), ofApi.includes(metric)];
  expect(known.map(owners)).toEqual([
    [true, false],
    [false, true],
  ]);
});

test('HeliographFiguresMissing notices each figure that a rule needs and that can disappear', async () => {
  const { worker, show } = fullRegistries();
  const names = async () =>
    new Set(
      [...samplesOf(await worker.registry.metrics()).keys()].map((series) => series.replace(/\{.*/, '')),
    );
  show({ figures: FIGURES });
  const all = await names();
  show(null);
  const steady = await names();
  const rules = repositoryFile('charts/heliograph/files/alert-rules.yaml');
  const needed = new Set(rules.match(/heliograph_\w+/g));
  const missing = /alert: HeliographFiguresMissing\n[\s\S]*?\n {8}for:/.exec(rules)?.[0] ?? '';
  const noticed = [...missing.matchAll(/absent\((\w+)\)/g)].map(([, metric = '']) => metric);
  const figures = [...needed].filter((name) => all.has(name) && !steady.has(name));
  expect(noticed.toSorted()).toEqual(figures.toSorted());
  expect(figures.length).toBeGreaterThan(4);
});

describe('the figures of the database', () => {
  test('are shown with a 0 for what there is none of', async () => {
    const { worker, show } = fullRegistries();
    show({ figures: FIGURES });
    const samples = samplesOf(await worker.registry.metrics());
    const own = [
      'database_up',
      'deliveries_pending{state="due"}',
      'deliveries_pending{state="suspended"}',
    ].map((name) => samples.get(`heliograph_${name}`));
    expect(own).toEqual([1, 3, 0]);
    expect(samples.get('heliograph_endpoints{mode="disabled"}')).toBe(0);
    expect(samples.get('heliograph_deliveries_oldest_due_seconds')).toBe(2.5);
  });

  test('disappear while it is away: the last ones would pass for fresh', async () => {
    const { worker, show } = fullRegistries();
    show({ figures: FIGURES });
    show(null);
    const samples = samplesOf(await worker.registry.metrics());
    expect(samples.get('heliograph_database_up')).toBe(0);
    const gone = /^heliograph_(deliveries_(pending|oldest)|endpoints|inbox_(backlog|oldest|failed$))/;
    expect([...samples.keys()].filter((series) => gone.test(series))).toEqual([]);
    show({ figures: FIGURES });
    expect(samplesOf(await worker.registry.metrics()).get('heliograph_inbox_backlog')).toBe(6);
  });

  test('of a worker of another version leave out what it does not know', async () => {
    const { worker, show } = fullRegistries();
    show({ figures: FIGURES });
    show({ figures: { inboxBacklog: 5 } });
    const samples = samplesOf(await worker.registry.metrics());
    const names = ['database_up', 'inbox_backlog', 'inbox_failed', 'endpoints{mode="open"}'];
    expect(names.map((name) => samples.get(`heliograph_${name}`))).toEqual([1, 5, undefined, undefined]);
  });
});

test('an activity counts by its outcome, and as retrying when it throws', async () => {
  const { worker } = fullRegistries();
  const results = [{ outcome: 'accepted' as const }, new Error('busy')];
  const run = countedActivity(async (n: number) => {
    const result = results[n];
    if (result === undefined || result instanceof Error) throw result;
    return result;
  }, worker.send);
  expect(await run(0)).toEqual({ outcome: 'accepted' });
  await expect(run(1)).rejects.toThrow('busy');
  expect(counted(await worker.registry.metrics(), 'heliograph_sends_total')).toEqual({
    '{outcome="accepted"}': 1,
    '{outcome="retrying"}': 1,
  });
});

type Described = { name: string; help: string; type: string; labels: string[] };

/** Our own metrics as they were declared. */
function describeAll(registry: { getMetricsAsArray(): object[] }): Described[] {
  const own = registry.getMetricsAsArray() as {
    name: string;
    help: string;
    type: string;
    labelNames: string[];
  }[];
  return own
    .filter(({ name }) => name.startsWith('heliograph_'))
    .map(({ name, help, type, labelNames }) => ({ name, help, type, labels: labelNames }));
}
