type LoopFacts = {
  /** From the end of a turn to the next one, unless it is woken. */
  pollMs: number;
  /** Its turns are made in one worker of all. */
  leaderOnly?: true;
  /** It calls Temporal: no restart helps it while Temporal is away. */
  needsTemporal?: true;
  /** A turn that takes longer is stuck; without it, `PROCESS_LIMITS` says when. */
  turnLimitMs?: number;
};

const HOUR_MS = 3_600_000;

/** How often a loop looks that leaves its work to the leader: notifications still wake it. */
export const ASIDE_POLL_MS = 10_000;

/** How often a loop looks for which `work-watch` finds nothing to do. */
export const IDLE_POLL_MS = 60_000;

/**
 * All loops of a worker. Logs, metrics, /readyz and docs/architecture.md have these names; `startLoop` and /readyz read the
 * rest here, and a test compares the document.
 */
export const LOOPS = {
  intake: { pollMs: 250 },
  'delivery-loop': { pollMs: 250 },
  'retry-release': { pollMs: 250 },
  'head-parking': { pollMs: 1_000 },
  'backlog-return': { pollMs: 1_000, leaderOnly: true },
  prober: { pollMs: 1_000 },
  'order-release': { pollMs: 1_000, leaderOnly: true },
  'closing-windows': { pollMs: 10_000, leaderOnly: true },
  'session-workflow': { pollMs: 5_000, needsTemporal: true },
  'delivery-sweeper': { pollMs: 5_000, leaderOnly: true },
  'run-upkeep': { pollMs: 30_000, leaderOnly: true, needsTemporal: true },
  'trouble-watch': { pollMs: 1_000, needsTemporal: true },
  heartbeat: { pollMs: 1_000 },
  'work-watch': { pollMs: 1_000 },
  'endpoint-keeper': { pollMs: 1_000 },
  'alert-keeper': { pollMs: 10_000 },
  'operations-hooks': { pollMs: 1_000 },
  'figures-keeper': { pollMs: 1_000, leaderOnly: true },
  /** Its first turn after a while clears tables of millions of rows, in portions. */
  housekeeping: { pollMs: 60_000, turnLimitMs: 2 * HOUR_MS },
  'workflow-starter': { pollMs: 250, needsTemporal: true },
  'number-schedule': { pollMs: HOUR_MS, needsTemporal: true },
  'temporal-watch': { pollMs: 5_000, needsTemporal: true },
} as const satisfies Record<string, LoopFacts>;

export type LoopName = keyof typeof LOOPS;

export type LeaderLoopName = {
  [N in LoopName]: (typeof LOOPS)[N] extends { leaderOnly: true } ? N : never;
}[LoopName];

export function loopFacts(name: LoopName): LoopFacts {
  return LOOPS[name];
}
