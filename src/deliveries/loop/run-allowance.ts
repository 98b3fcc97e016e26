/** How many runs may be started; refilled evenly over time. */
type StartAllowance = {
  /** Uses up one start; false when there is none left. `isFirst`: for a tenant that has no run open. */
  take(isFirst: boolean): boolean;
  /** How many processes share the installation's allowance; at least 1. */
  shareWith(processes: number): void;
};

/** Whether so little is delivered that each delivery may have a workflow beside it. */
export type CalmWatch = {
  /** A first attempt begins. */
  note(): void;
  isCalm(): boolean;
  /** How many processes share the installation's allowance; at least 1. */
  shareWith(processes: number): void;
};

/** What a core can start and carry beside everything else: a run costs about 50 ms of it. */
const STARTS_PER_SECOND_AND_CORE = 5;

/** What may come at once and still be calm. */
const CALM_AT_ONCE = 10;

/** For how long, in seconds, a burst keeps what comes after it from being calm. */
const LONGEST_DEBT_SECONDS = 2;

/** Failed attempts come in bunches: what begins to fail shows at once. */
const SAVED_FAILURE_STARTS = 20;

/** Of them, kept for tenants that have no run open, so that the storm of another does not hide what begins to fail. */
const STARTS_FOR_OTHERS = 5;

/** A watch for `cores` cores, on the clock `now` in ms: calm up to 5 first attempts per second and core. */
export function makeCalmWatch(cores: number, now?: () => number): CalmWatch {
  const perSecond = STARTS_PER_SECOND_AND_CORE * cores;
  const bucket = makeBucket(perSecond, CALM_AT_ONCE, now);
  return {
    note: () => {
      if (bucket.left() > -bucket.perSecond() * LONGEST_DEBT_SECONDS) bucket.spend();
    },
    isCalm: () => bucket.left() >= 0,
    shareWith: bucket.shareWith,
  };
}

/** An allowance for the runs of deliveries that fail, for `cores` cores, on the clock `now` in ms. */
export function makeFailureAllowance(cores: number, now?: () => number): StartAllowance {
  const bucket = makeBucket(STARTS_PER_SECOND_AND_CORE * cores, SAVED_FAILURE_STARTS, now);
  return {
    take(isFirst) {
      if (bucket.left() < 1 + (isFirst ? 0 : bucket.shareOf(STARTS_FOR_OTHERS))) return false;
      bucket.spend();
      return true;
    },
    shareWith: bucket.shareWith,
  };
}

/** This process's share of what all of them may start. */
function makeBucket(
  perSecondOverall: number,
  savedOverall: number,
  now: () => number = () => performance.now(),
) {
  let processes = 1;
  let left = savedOverall;
  let filledMs = now();
  const perSecond = () => perSecondOverall / processes;
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
    shareWith(count: number) {
      refill();
      processes = Math.max(1, count);
    },
  };
}
