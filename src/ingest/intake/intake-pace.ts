/**
 * The most that a transaction ingests. `cost` counts items and their deliveries, so it bounds what is written, and for how long the
 * thread that makes the statement serves no other request: about 10 ms.
 */
const MOST = { cost: 1_500, wabas: 100 };

/**
 * Other bodies of the shard wait as long as a turn takes. A slow machine takes smaller steps, but not so small that
 * beginning and ending them is most of the work.
 */
const SLOW_TURN_MS = 300;
const QUICK_TURN_MS = 150;
const LEAST_COST_WHEN_SLOW = 500;

type Left = { isNothing: boolean; nextWabaId: string };

/**
 * How much the next transaction ingests. As long as everything that waits fits into one, the oldest bodies are taken
 * whosever they are. With more, WABAs take turns, so that no WABA stands behind another's backlog. A transaction that
 * fails is tried again with half of it, and with other WABAs first where there are any.
 */
export type IntakePace = {
  size(): { cost: number; wabas: number };
  /** The turn is one of WABAs and begins behind this one; null while there is no backlog, and the shard in no trouble. */
  afterWabaId(): string | null;
  taking(left: Left): void;
  done(durationMs: number): void;
  failed(): void;
  takeTurns(): void;
};

export function makeIntakePace(): IntakePace {
  let size = MOST;
  let afterWabaId: string | null = null;
  let taking: Left | null = null;
  const scale = (factor: number, leastCost: number) => {
    const scaled = (value: number, least: number, most: number) =>
      Math.min(most, Math.max(least, Math.floor(value * factor)));
    size = {
      cost: scaled(size.cost, Math.min(leastCost, size.cost), MOST.cost),
      wabas: scaled(size.wabas, 1, MOST.wabas),
    };
  };
  return {
    size: () => size,
    afterWabaId: () => afterWabaId,
    taking: (left) => {
      taking = left;
    },
    done: (durationMs) => {
      if (taking === null) return;
      if (durationMs > SLOW_TURN_MS) scale(0.5, LEAST_COST_WHEN_SLOW);
      else if (durationMs < QUICK_TURN_MS) scale(2, 1);
      afterWabaId = taking.isNothing ? null : taking.nextWabaId;
      taking = null;
    },
    failed: () => {
      scale(0.5, 1);
      afterWabaId = taking?.nextWabaId ?? '';
      taking = null;
    },
    takeTurns: () => {
      afterWabaId = '';
      taking = null;
    },
  };
}
