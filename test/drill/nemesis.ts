import { setTimeout as delay } from 'node:timers/promises';
import { childrenOf, type DrillSupervisor, send } from './drill-supervisor.ts';
import type { Deed, NemesisStep, Target } from './nemesis-plan.ts';

/** A kill or pause as it was done. */
export type NemesisEvent = {
  /** Its place in the plan; null: Temporal was made to be away beside it. */
  n: number | null;
  /** Unix time in ms. */
  atMs: number;
  target: Target;
  deed: Deed;
  pid: number | null;
  /** From the deed until the part answered again; until it was thawed for a pause. */
  awayMs: number;
};

/**
 * Carries the plan out. A step does not wait until the one before is over, so parts can be away together; only a
 * part that is still away is waited for. The steps `beside` go on one by one until the plan is over.
 */
export async function runNemesis(
  supervisor: DrillSupervisor,
  plan: readonly NemesisStep[],
  onEvent: (event: NemesisEvent) => void,
  { signal, beside = [] }: { signal: AbortSignal; beside?: Iterable<NemesisStep> },
): Promise<void> {
  const busy = new Map<Target, Promise<void>>();
  const over = new AbortController();
  const begin = (step: NemesisStep, n: number | null) => {
    const before = busy.get(step.target) ?? Promise.resolve();
    const done = before.then(() => act(supervisor, step, n)).then(onEvent);
    // The next one who waits hears of it; without this a failure in between would end the process.
    done.catch(() => undefined);
    busy.set(step.target, done);
    return done;
  };
  const until = AbortSignal.any([signal, over.signal]);
  const others = oneByOne(beside, { act: (step) => begin(step, null), until });
  others.catch(() => undefined);
  for (const [index, step] of plan.entries()) {
    await delay(step.afterMs);
    await busy.get(step.target);
    if (signal.aborted) return;
    begin(step, index + 1).catch(() => undefined);
  }
  over.abort();
  await Promise.all([others, ...busy.values()]);
}

/** Each step begins `afterMs` after the one before was over. */
async function oneByOne(
  steps: Iterable<NemesisStep>,
  options: { act: (step: NemesisStep) => Promise<void>; until: AbortSignal },
): Promise<void> {
  for (const step of steps) {
    await delay(step.afterMs, undefined, { signal: options.until }).catch(() => undefined);
    if (options.until.aborted) return;
    await options.act(step);
  }
}

async function act(supervisor: DrillSupervisor, step: NemesisStep, n: number | null): Promise<NemesisEvent> {
  const { target, deed } = step;
  const pid = supervisor.pidOf(target) ?? null;
  const atMs = Date.now();
  const awayMs = await carryOut(supervisor, step);
  return { n, atMs, target, deed, pid, awayMs };
}

async function carryOut(supervisor: DrillSupervisor, { target, deed, awayMs }: NemesisStep): Promise<number> {
  if (deed === 'pause') return await supervisor.pauseFor(target, awayMs);
  if (deed === 'kill-backend') {
    return await supervisor.hurt(target, (pid) => {
      const backend = childrenOf(pid).at(-1);
      if (backend !== undefined) send(backend, 'SIGKILL');
    });
  }
  return await supervisor.killFor(target, awayMs, (pid) => {
    const children = deed === 'kill-tree' ? childrenOf(pid) : [];
    for (const one of [pid, ...children]) send(one, 'SIGKILL');
  });
}
