import { Counter, Histogram, Registry } from '@prometheus-io/client';

/** Upstream gives up after 5 s; whatever comes near that is worth a bucket. */
const ACKNOWLEDGE_BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

/** Few, because each operation has a set of them. */
const REQUEST_BUCKETS_SECONDS = [0.005, 0.025, 0.1, 0.5, 1, 5, 15];

export type NoteRequest = (status: number, seconds: number) => void;

/** Made once per process, for its plain and its https server. */
export type ApiMetrics = {
  registry: Registry;
  upstreamRequest: NoteRequest;
  /** The name must be one of few. */
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
