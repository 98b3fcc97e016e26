import { setTimeout as sleep } from 'node:timers/promises';
import type { Health } from './limits.ts';

/** `todo`: what the operator should do about it. */
export type Finding = {
  status: 'ok' | 'warn' | 'fail';
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

export type CheckResult = Finding & { name: string };

export const ok = (detail: string): Finding => ({ status: 'ok', detail });
export const warn = (detail: string, todo: string): Finding => ({ status: 'warn', detail, todo });
export const fail = (detail: string, todo: string): Finding => ({ status: 'fail', detail, todo });

/** By what the answer to a question says; false: all is well. */
export function byHealth(health: Health, detail: string, todo: string): Finding | false {
  if (health === 'up') return false;
  return (health === 'down' ? fail : warn)(detail, todo);
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
      return [findings].flat().map((finding) => ({ name, ...finding }));
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

export function overall(results: readonly CheckResult[]): Finding['status'] {
  for (const status of ['fail', 'warn'] as const)
    if (results.some((one) => one.status === status)) return status;
  return 'ok';
}
