import { setTimeout as sleep } from 'node:timers/promises';

type Checks = Readonly<Record<string, () => Promise<unknown>>>;

type CheckResult = 'ok' | 'failed';

export type Readiness = {
  status: 'ready' | 'unavailable' | 'draining';
  checks: Readonly<Record<string, CheckResult>>;
  /** What an operator should mend, although requests are served. */
  warnings?: readonly string[];
};

const CHECK_TIMEOUT_MS = 2_000;

/** Anybody may ask, so the parts behind it are asked once in this time at most. */
const KEEP_FOR_MS = 1_000;

/**
 * Tells whether requests can be served: every required check passes within two seconds and the process is not about to stop.
 * `isDraining` is asked each time, the checks at most once a second.
 */
export function createReadiness(options: {
  /** Each must pass. */
  checks: Checks;
  /** Shown, but no reason to be out of service. */
  optionalChecks: Checks;
  isDraining: () => boolean;
  warnings: () => readonly string[];
  now: () => number;
}): () => Promise<Readiness> {
  let latest: { at: number; results: Promise<Record<string, CheckResult>> } | null = null;
  return async () => {
    if (options.isDraining()) return { status: 'draining', checks: {} };
    if (latest === null || options.now() - latest.at >= KEEP_FOR_MS) {
      latest = { at: options.now(), results: runChecks({ ...options.checks, ...options.optionalChecks }) };
    }
    const checks = await latest.results;
    const isReady = Object.keys(options.checks).every((name) => checks[name] === 'ok');
    const warnings = options.warnings();
    return {
      status: isReady ? 'ready' : 'unavailable',
      checks,
      ...(warnings.length > 0 && { warnings }),
    };
  };
}

async function runChecks(
  checks: Readonly<Record<string, () => Promise<unknown>>>,
): Promise<Record<string, CheckResult>> {
  const results = await Promise.all(
    Object.entries(checks).map(async ([name, check]) => [name, await resultOf(check)] as const),
  );
  return Object.fromEntries(results);
}

async function resultOf(check: () => Promise<unknown>): Promise<CheckResult> {
  const done = check().then(
    () => 'ok' as const,
    () => 'failed' as const,
  );
  return await Promise.race([done, sleep(CHECK_TIMEOUT_MS, 'failed' as const, { ref: false })]);
}
