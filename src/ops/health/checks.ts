import { setTimeout as sleep } from 'node:timers/promises';
import type { Health } from './limits.ts';

/** What was found; `todo`: what to do about it. `unknown`: it could not be found out. */
export type Finding = {
  status: Health | 'unknown';
  detail: string;
  todo?: string;
};

/** Several findings may come of it; none: it has nothing to look at. */
export type Check = {
  name: string;
  /** What to do when the check cannot even be made. */
  todo: string;
  run: () => Promise<Finding | readonly Finding[]>;
};

/** As `heliograph-server doctor --json` prints it; programs read these words. */
export type CheckResult = Omit<Finding, 'status'> & { name: string; status: 'ok' | 'warn' | 'fail' };

const WORDS = { up: 'ok', degraded: 'warn', unknown: 'warn', down: 'fail' } as const;

export const ok = (detail: string): Finding => ({ status: 'up', detail });
export const warn = (detail: string, todo: string): Finding => ({ status: 'degraded', detail, todo });
export const fail = (detail: string, todo: string): Finding => ({ status: 'down', detail, todo });

/** By what the answer to a question says; false: all is well. */
export function byHealth(status: Health, detail: string, todo: string): Finding | false {
  return status !== 'up' && { status, detail, todo };
}

export function unlessFine(fine: Finding, ...wrong: readonly (Finding | false)[]): Finding[] {
  const found = wrong.filter((one) => one !== false);
  return found.length > 0 ? found : [fine];
}

/** What does not answer by then counts as failed: every check tells something within a minute in all. */
const CHECK_WITHIN_MS = 15_000;

/** Side by side; the results are in the order of the checks. A check that throws has failed. */
export async function runChecks(
  checks: readonly Check[],
  reasonOf: (error: unknown) => string,
  withinMs = CHECK_WITHIN_MS,
): Promise<CheckResult[]> {
  const results = await Promise.all(
    checks.map(async ({ name, todo, run }) => {
      const late = fail(`no answer within ${withinMs / 1_000} s`, todo);
      const found = run().catch((error: unknown) => fail(reasonOf(error), todo));
      const findings = await Promise.race([found, sleep(withinMs, late, { ref: false })]);
      return [findings].flat().map((finding) => resultOf(name, finding));
    }),
  );
  return results.flat();
}

export function durationOf(ms: number): string {
  const seconds = Math.round(ms / 1_000);
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} days`;
}

export function resultOf(name: string, { status, ...finding }: Finding): CheckResult {
  return { name, status: WORDS[status], ...finding };
}

export function overall(results: readonly CheckResult[]): CheckResult['status'] {
  for (const status of ['fail', 'warn'] as const)
    if (results.some((one) => one.status === status)) return status;
  return 'ok';
}
