import { setTimeout as delay } from 'node:timers/promises';
import { childrenOf, type DrillSupervisor, send } from './drill-supervisor.ts';
import type { Deed, NemesisStep, Target } from './nemesis-plan.ts';

/** A kill or pause as it was done. */
export type NemesisEvent = {
  n: number;
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
 * part that is still away is waited for.
 */
export async function runNemesis(
  supervisor: DrillSupervisor,
  plan: readonly NemesisStep[],
  onEvent: (event: NemesisEvent) => void,
  signal: AbortSignal,
): Promise<void> {
  const busy = new Map<Target, Promise<void>>();
  for (const [index, step] of plan.entries()) {
    await delay(step.afterMs);
    await busy.get(step.target);
    if (signal.aborted) return;
    const done = act(supervisor, step, index + 1).then(onEvent);
    // Heard of by whoever waits next; without this a failure in between would end the process.
    done.catch(() => undefined);
    busy.set(step.target, done);
  }
  await Promise.all(busy.values());
}

async function act(supervisor: DrillSupervisor, step: NemesisStep, n: number): Promise<NemesisEvent> {
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
