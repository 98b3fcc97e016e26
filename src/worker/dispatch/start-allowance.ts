/** How many workflows may be started now; refilled evenly, at most a second's worth is saved up. */
export type StartAllowance = { available(): number; spend(starts: number): void };

/** What a core can start and carry beside everything else: a run costs about 50 ms of it. */
const STARTS_PER_SECOND_AND_CORE = 5;

/** An allowance for `cores` cores on the clock `now`, in ms. */
export function makeStartAllowance(
  cores: number,
  now: () => number = () => performance.now(),
): StartAllowance {
  const perSecond = STARTS_PER_SECOND_AND_CORE * cores;
  let left = perSecond;
  let filledMs = now();
  const refill = () => {
    left = Math.min(perSecond, left + ((now() - filledMs) / 1_000) * perSecond);
    filledMs = now();
  };
  return {
    available: () => {
      refill();
      return Math.floor(left);
    },
    spend: (starts) => {
      refill();
      left -= starts;
    },
  };
}
