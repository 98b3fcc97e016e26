import type { AttemptOutcome } from '../judge-outcome.ts';
import type { WaitingDelivery } from '../queue/claim-one.ts';

/** The loop of this process claims nothing at present: it stops, or attempts cannot be recorded. */
export const NOT_CLAIMING = {
  state: 'waiting',
  reason: 'this worker attempts nothing at present',
  delayMs: 5_000,
} as const;

/** The delivery is due: the loop attempts it when its endpoint has room. */
export const AT_LIMIT = {
  state: 'waiting',
  reason: 'its endpoint has no room at present',
  delayMs: 5_000,
} as const;

/** When a run looks again at what waits for something else than time; its end is reported to it earlier. */
const LOOK_MS = { underWay: 5_000, due: 10_000, off: 600_000 };

/** Why a delivery cannot be attempted now, and when its run looks again. */
export function waitOf({ state, mode, ...waiting }: WaitingDelivery): AttemptOutcome {
  const aside = waiting.steppedAsideAt?.toISOString();
  const note = aside === undefined ? '' : `; stepped aside at ${aside}: later events of its key go on`;
  const wait = (reason: string, delayMs: number) =>
    ({ state: 'waiting', reason: `${reason}${note}`, delayMs: Math.max(1, Math.round(delayMs)) }) as const;
  if (state === 'claimed') return wait('an attempt is under way', LOOK_MS.underWay);
  const failure = waiting.lastError === null ? '' : ` (${waiting.lastError})`;
  if (state === 'retrying' && mode === 'open')
    return wait(waiting.lastError ?? 'not due yet', waiting.waitMs ?? LOOK_MS.due);
  if (mode === 'probing')
    return wait(
      `the endpoint is probing${failure}`,
      Math.max(LOOK_MS.due, waiting.probeMs ?? LOOK_MS.off) + LOOK_MS.underWay,
    );
  if (mode !== 'open') return wait(`the endpoint is ${mode}${failure}`, LOOK_MS.off);
  return wait(state === 'due' ? 'its turn comes' : `it is ${state}`, LOOK_MS.due);
}
