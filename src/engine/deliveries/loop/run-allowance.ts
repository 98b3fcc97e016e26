/** The runs that a core can start and carry beside everything else: a run costs about 50 ms of it. */
const STARTS_PER_SECOND_AND_CORE = 5;

const CALM_AT_ONCE = 10;

/** For how long, in seconds, a burst keeps what comes after it from being calm. */
const LONGEST_DEBT_SECONDS = 2;

/** Failed attempts come in bunches: what begins to fail shows at once. */
const SAVED_FAILURE_STARTS = 20;

/** Of them, kept for tenants that have no run open, so that the storm of another does not hide what begins to fail. */
const STARTS_FOR_OTHERS = 5;

/** Whether so little is delivered that each delivery may have a workflow beside it: by the first attempts that `note` counts. */
export type CalmWatch = ReturnType<typeof makeCalmWatch>;

/** A watch for `cores` cores, on the clock `now` in ms: calm up to 5 first attempts per second and core. */
export function makeCalmWatch(cores: number, now?: () => number) {
  const { left, spend, perSecond, shareWith } = makeBucket(cores, CALM_AT_ONCE, now);
  return {
    note: () => {
      if (left() > -perSecond() * LONGEST_DEBT_SECONDS) spend();
    },
    isCalm: () => left() >= 0,
    shareWith,
  };
}

/** How many runs of deliveries that fail may be started, for `cores` cores, on the clock `now` in ms. */
export function makeFailureAllowance(cores: number, now?: () => number) {
  const { left, spend, shareOf, shareWith } = makeBucket(cores, SAVED_FAILURE_STARTS, now);
  return {
    hasStart: () => left() >= 1,
    /** Uses up one start; false when there is none left. `isFirst`: for a tenant that has no run open. */
    take(isFirst: boolean): boolean {
      const mayTake = left() >= 1 + (isFirst ? 0 : shareOf(STARTS_FOR_OTHERS));
      if (mayTake) spend();
      return mayTake;
    },
    shareWith,
  };
}

/** This process's share of what all of them may start. */
function makeBucket(cores: number, savedOverall: number, now: () => number = () => performance.now()) {
  let processes = 1;
  let left = savedOverall;
  let filledMs = now();
  const perSecond = () => (STARTS_PER_SECOND_AND_CORE * cores) / processes;
  // With more processes than may be saved up, each may still start one.
  const most = () => Math.max(1, savedOverall / processes);
  const refill = () => {
    const earned = ((now() - filledMs) / 1_000) * perSecond();
    left = Math.min(most(), left + earned);
    filledMs = now();
    return left;
  };
  return {
    left: refill,
    perSecond,
    /** Of what is saved up overall, this process's part, beside which one is always left. */
    shareOf: (overall: number) => Math.min(overall / processes, most() - 1),
    spend: () => {
      left -= 1;
    },
    /** How many processes share it; at least 1. */
    shareWith(count: number) {
      refill();
      processes = Math.max(1, count);
    },
  };
}
