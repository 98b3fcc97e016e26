import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from '@prometheus-io/client';
import packageJson from '../../../package.json' with { type: 'json' };

/** An event as traces know it (docs/decisions/0066). */
export type TracedEvent = { wabaId: string; type?: string; eventId: string; uuid?: string };

/** Something that was done; times in milliseconds since 1970. */
export type SpanNote = {
  name: string;
  /** The events that it was done for, or the upstream body with them. None: those of its activity. */
  about: readonly TracedEvent[] | Buffer;
  startMs: number;
  endMs: number;
  attributes?: Readonly<Record<string, string | number | boolean | null | undefined>>;
  failed?: string | undefined;
};

/** A run of an activity, as its span tells it. */
export type ActivityRun = { type: string; workflow: string; workflow_id: string; attempt: number };

type Tracing = {
  note: ((span: SpanNote) => void) | null;
  inActivity: (<Result>(run: ActivityRun, work: () => Promise<Result>) => Promise<Result>) | null;
};

/** Where parts of the path of a message tell what they did. Nothing listens, and nothing is made, unless traces are switched on. */
export const tracing: Tracing = { note: null, inActivity: null };

/** Where publishing tells of a delivery that the filter of an endpoint spared; nothing listens outside of workers. */
export const filteredDeliveries: { note: (() => void) | null } = { note: null };

/** Counts what filters of endpoints spare. */
export function countFilteredDeliveries(registry: Registry): void {
  const filtered = new Counter({
    name: 'heliograph_deliveries_filtered_total',
    help: 'Events that were not sent to an endpoint because its content filter does not take them.',
    registers: [registry],
  });
  filteredDeliveries.note = () => filtered.inc();
}

/** Upstream gives up after 5 s; whatever comes near that is worth a bucket. */
const ACKNOWLEDGE_BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

/** Few, because each operation has a set of them. */
const REQUEST_BUCKETS_SECONDS = [0.005, 0.025, 0.1, 0.5, 1, 5, 15];

/** Notes a request that was answered with `status` after so many seconds. */
export type NoteRequest = (status: number, seconds: number) => void;

/** What the API counts with; made once per process, for its plain and its https server. */
export type ApiMetrics = {
  registry: Registry;
  /** Of POST /upstream/webhook. */
  upstreamRequest: NoteRequest;
  /** Of one operation; the name must be one of few. */
  operation(name: string): NoteRequest;
  /** X-Forwarded-For came from an address that is not trusted. */
  noteUntrustedProxy(): void;
};

export function makeApiMetrics(): ApiMetrics {
  const registry = new Registry();
  return {
    registry,
    upstreamRequest: makeUpstreamMetrics(registry),
    operation: makeRequestMetrics(registry),
    noteUntrustedProxy: makeProxyMetrics(registry),
  };
}

function makeProxyMetrics(registry: Registry): () => void {
  const requests = new Counter({
    name: 'heliograph_untrusted_proxy_requests_total',
    help: 'Requests with an X-Forwarded-For from an address that HELIOGRAPH_TRUST_PROXY does not name.',
    registers: [registry],
  });
  return () => requests.inc();
}

function makeUpstreamMetrics(registry: Registry): NoteRequest {
  const registers = [registry];
  const requests = new Counter({
    name: 'heliograph_upstream_webhooks_total',
    help: 'Webhooks of the upstream platform, by the status of the response.',
    labelNames: ['status'],
    registers,
  });
  const acknowledge = new Histogram({
    name: 'heliograph_upstream_webhook_duration_seconds',
    help: 'From the head of an upstream webhook to its 200, which says that it is committed.',
    buckets: ACKNOWLEDGE_BUCKETS_SECONDS,
    registers,
  });
  const child = childrenOf((status: number) => requests.labels(String(status)));
  child(200).inc(0);
  return (status, seconds) => {
    child(status).inc();
    if (status === 200) acknowledge.observe(seconds);
  };
}

function makeRequestMetrics(registry: Registry): (operation: string) => NoteRequest {
  const registers = [registry];
  const requests = new Counter({
    name: 'heliograph_http_requests_total',
    help: 'All other requests, by operation of the External API or part of the service.',
    labelNames: ['operation', 'status'],
    registers,
  });
  const duration = new Histogram({
    name: 'heliograph_http_request_duration_seconds',
    help: 'From the head of a request to the end of its response.',
    labelNames: ['operation'],
    buckets: REQUEST_BUCKETS_SECONDS,
    registers,
  });
  return (operation) => {
    const child = childrenOf((hundreds: number) => requests.labels(operation, `${hundreds}xx`));
    const durations = duration.labels(operation);
    return (status, seconds) => {
      child(Math.trunc(status / 100)).inc();
      durations.observe(seconds);
    };
  };
}

/** Makes a child when its label first occurs, and keeps it. */
function childrenOf<Child>(make: (label: number) => Child): (label: number) => Child {
  const children = new Map<number, Child>();
  return (label) => {
    const known = children.get(label);
    if (known !== undefined) return known;
    const child = make(label);
    children.set(label, child);
    return child;
  };
}

/** The finest would wake the process a hundred times a second for nothing but this. */
const EVENT_LOOP_EVERY_MS = 50;
const UTILIZATION_EVERY_MS = 1_000;

/**
 * From now on the registry also tells of this process: processor time, memory, event loop, collections, version. Its
 * timers run until the process ends and keep it from ending no longer, so call it once, where metrics are served.
 */
export function watchProcess(registry: Registry): void {
  collectDefaultMetrics({
    register: registry,
    eventLoopMonitoringPrecision: EVENT_LOOP_EVERY_MS,
    eventLoopUtilizationTimeout: UTILIZATION_EVERY_MS,
  });
  const build = new Gauge({
    name: 'heliograph_build_info',
    help: 'Always 1; the label says which version runs.',
    labelNames: ['version'],
    registers: [registry],
  });
  build.set({ version: packageJson.version }, 1);
}

/** Counts one more of this outcome. */
export type CountOutcome<Outcome extends string> = (outcome: Outcome) => void;

/**
 * A counter with the label `outcome`, which has these values and no other. All are there from the start with 0:
 * a series that begins with its first failure has no increase to alert on.
 */
export function makeOutcomeCounter<Outcome extends string>(
  registry: Registry,
  metric: { name: string; help: string; outcomes: readonly Outcome[] },
): CountOutcome<Outcome> {
  const { name, help, outcomes } = metric;
  const counter = new Counter({ name, help, labelNames: ['outcome'], registers: [registry] });
  const children = new Map(outcomes.map((outcome) => [outcome, counter.labels(outcome)]));
  for (const child of children.values()) child.inc(0);
  return (outcome) => children.get(outcome)?.inc();
}

/** The same activity with each run counted by its outcome; one that throws is run again and counts as `retrying`. */
export function counted<Input, Result extends { outcome: string }>(
  run: (input: Input) => Promise<Result>,
  count: CountOutcome<Result['outcome'] | 'retrying'>,
): (input: Input) => Promise<Result> {
  return async (input) => {
    try {
      const result = await run(input);
      count(result.outcome);
      return result;
    } catch (error) {
      count('retrying');
      throw error;
    }
  };
}
