/** How many workflows may be started beside first attempts; refilled evenly over time. */
export type StartAllowance = {
  /** Uses up one start; false when there is none left. */
  take(): boolean;
  /** How many processes share the installation's allowance; at least 1. */
  shareWith(processes: number): void;
};

/** What a core can start and carry beside everything else: a run costs about 50 ms of it. */
const STARTS_PER_SECOND_AND_CORE = 5;

/** More at once would take the cores from the burst that they belong to. */
const SAVED_STARTS = 2;

/** Failed attempts come in bunches: what begins to fail shows at once. */
const SAVED_RETRY_STARTS = 20;

/** An allowance of head starts for `cores` cores, on the clock `now` in ms. */
export function makeStartAllowance(cores: number, now?: () => number): StartAllowance {
  return makeAllowance(STARTS_PER_SECOND_AND_CORE * cores, SAVED_STARTS, now);
}

/** The same for the workflows of deliveries whose first attempt failed. */
export function makeRetryAllowance(cores: number, now?: () => number): StartAllowance {
  return makeAllowance(STARTS_PER_SECOND_AND_CORE * cores, SAVED_RETRY_STARTS, now);
}

function makeAllowance(
  perSecondOverall: number,
  saved: number,
  now: () => number = () => performance.now(),
): StartAllowance {
  let processes = 1;
  let left = saved;
  let filledMs = now();
  const refill = () => {
    const earned = ((now() - filledMs) / 1_000) * (perSecondOverall / processes);
    left = Math.min(saved, left + earned);
    filledMs = now();
  };
  return {
    take() {
      refill();
      if (left < 1) return false;
      left -= 1;
      return true;
    },
    shareWith(count) {
      refill();
      processes = Math.max(1, count);
    },
  };
}
