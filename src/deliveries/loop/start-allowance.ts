/** How many workflows may be started; refilled evenly over time. */
export type StartAllowance = {
  /** Uses up one start; false when there is none left. */
  take(): boolean;
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
const SAVED_RETRY_STARTS = 20;

/** A watch for `cores` cores, on the clock `now` in ms: calm up to 5 first attempts per second and core. */
export function makeCalmWatch(cores: number, now?: () => number): CalmWatch {
  const perSecond = STARTS_PER_SECOND_AND_CORE * cores;
  const bucket = makeBucket(perSecond, CALM_AT_ONCE, now);
  const most = perSecond * LONGEST_DEBT_SECONDS;
  return {
    note: () => {
      if (bucket.left() > -most) bucket.spend();
    },
    isCalm: () => bucket.left() >= 0,
    shareWith: bucket.shareWith,
  };
}

/** An allowance for the workflows of deliveries whose first attempt failed, for `cores` cores, on the clock `now` in ms. */
export function makeRetryAllowance(cores: number, now?: () => number): StartAllowance {
  const bucket = makeBucket(STARTS_PER_SECOND_AND_CORE * cores, SAVED_RETRY_STARTS, now);
  return {
    take() {
      if (bucket.left() < 1) return false;
      bucket.spend();
      return true;
    },
    shareWith: bucket.shareWith,
  };
}

function makeBucket(perSecondOverall: number, saved: number, now: () => number = () => performance.now()) {
  let processes = 1;
  let left = saved;
  let filledMs = now();
  const refill = () => {
    const earned = ((now() - filledMs) / 1_000) * (perSecondOverall / processes);
    left = Math.min(saved, left + earned);
    filledMs = now();
    return left;
  };
  return {
    left: refill,
    spend: () => {
      left -= 1;
    },
    shareWith(count: number) {
      refill();
      processes = Math.max(1, count);
    },
  };
}
