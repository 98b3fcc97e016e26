import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';

type Checks = Readonly<Record<string, () => Promise<unknown>>>;

type CheckResult = 'ok' | 'failed';

export type Readiness = {
  status: 'ready' | 'unavailable' | 'draining';
  checks: Readonly<Record<string, CheckResult>>;
};

const CHECK_TIMEOUT_MS = 2_000;

/** Probes wait for a second (Kubernetes, HAProxy): a part that is silent and not needed must not use that up. */
const OPTIONAL_CHECK_TIMEOUT_MS = 500;

/** The path is public, so the parts behind it are checked at most once in this time. */
const KEEP_FOR_MS = 1_000;

/**
 * Ready: every required check passes within two seconds and the process is not about to stop; the others are waited for half a second.
 * `isDraining` is asked each time, the checks at most once a second.
 */
export function createReadiness(options: {
  checks: Checks;
  /** Shown, but no reason to be out of service. */
  optionalChecks: Checks;
  isDraining: () => boolean;
  now: () => number;
}): () => Promise<Readiness> {
  let latest: { at: number; results: Promise<Record<string, CheckResult>> } | null = null;
  return async () => {
    if (options.isDraining()) return { status: 'draining', checks: {} };
    if (latest === null || options.now() - latest.at >= KEEP_FOR_MS) {
      const required = runChecks(options.checks, CHECK_TIMEOUT_MS);
      const optional = runChecks(options.optionalChecks, OPTIONAL_CHECK_TIMEOUT_MS);
      const results = Promise.all([required, optional]).then((both) => Object.assign({}, ...both));
      latest = { at: options.now(), results };
    }
    const checks = await latest.results;
    const isReady = Object.keys(options.checks).every((name) => checks[name] === 'ok');
    return { status: isReady ? 'ready' : 'unavailable', checks };
  };
}

async function runChecks(checks: Checks, timeoutMs: number): Promise<Record<string, CheckResult>> {
  const results = await Promise.all(
    Object.entries(checks).map(async ([name, check]) => [name, await resultOf(check, timeoutMs)] as const),
  );
  return Object.fromEntries(results);
}

async function resultOf(check: () => Promise<unknown>, timeoutMs: number): Promise<CheckResult> {
  const done = check().then(
    () => 'ok' as const,
    () => 'failed' as const,
  );
  return await Promise.race([done, sleep(timeoutMs, 'failed' as const, { ref: false })]);
}

/** Of a worker's health, what an API beside it shows. */
export type WorkerSaid = { checks: { temporal: 'ok' | 'failed' } };

/** Rejects while the worker of this process does not reach Temporal. */
export async function checkTemporal(workerHealth: () => Promise<WorkerSaid | null>): Promise<void> {
  const said = await workerHealth();
  if (said?.checks.temporal !== 'ok') throw new Error('Temporal is away');
}

/** GET /healthz: the process is up. GET /readyz: what it needs is up too; 503 otherwise, and while stopping. */
export async function healthRoutes(
  scope: FastifyInstance,
  { readiness }: { readiness: () => Promise<Readiness> },
): Promise<void> {
  scope.get('/healthz', async () => ({ status: 'ok' }));
  scope.get('/readyz', async (_request, reply) => {
    const state = await readiness();
    return reply.code(state.status === 'ready' ? 200 : 503).send(state);
  });
}
