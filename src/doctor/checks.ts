import { setTimeout as sleep } from 'node:timers/promises';

/** What a check found; `todo`: what the operator should do about it. */
export type Finding = {
  status: 'ok' | 'warn' | 'fail';
  detail: string;
  todo?: string;
};

/** Several findings may come of one check; none: it has nothing to look at. */
export type Check = { name: string; run: () => Promise<Finding | readonly Finding[]> };

export type CheckResult = Finding & { name: string };

export const ok = (detail: string): Finding => ({ status: 'ok', detail });
export const warn = (detail: string, todo: string): Finding => ({ status: 'warn', detail, todo });
export const fail = (detail: string, todo: string): Finding => ({ status: 'fail', detail, todo });

/** What does not answer by then counts as failed: every check tells something within a minute in all. */
const CHECK_WITHIN_MS = 15_000;

/** Runs all checks side by side; their results are in their order. A check that throws has failed. */
export async function runChecks(
  checks: readonly Check[],
  reasonOf: (error: unknown) => string,
  withinMs = CHECK_WITHIN_MS,
): Promise<CheckResult[]> {
  const results = await Promise.all(
    checks.map(async ({ name, run }) => {
      const late = fail(
        `no answer within ${withinMs / 1_000} s`,
        `look at what ${name} needs, then run this again`,
      );
      const found = run().catch((error: unknown) => fail(reasonOf(error), TODO[name] ?? 'see the detail'));
      const findings = await Promise.race([found, sleep(withinMs, late, { ref: false })]);
      return [findings].flat().map((finding) => ({ name, ...finding }));
    }),
  );
  return results.flat();
}

/** What to do where a check could not even be made. */
const TODO: Readonly<Record<string, string>> = {
  database: 'start PostgreSQL, or correct HELIOGRAPH_DATABASE_URL',
  temporal:
    'start Temporal, or correct HELIOGRAPH_TEMPORAL_ADDRESS and its TLS settings; deliveries go on meanwhile',
  'object store': 'start the object store, or correct HELIOGRAPH_OBJECT_STORE_*; media waits meanwhile',
  'public address': 'correct HELIOGRAPH_PUBLIC_URL, DNS or the proxy; upstream and tenants come this way',
  upstream: 'correct HELIOGRAPH_UPSTREAM_GRAPH_URL, or let this machine reach it',
};

/** The worst of all. */
export function overall(results: readonly CheckResult[]): Finding['status'] {
  for (const status of ['fail', 'warn'] as const)
    if (results.some((one) => one.status === status)) return status;
  return 'ok';
}
