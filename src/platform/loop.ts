import type { Logger } from './logger.ts';
import { ASIDE_POLL_MS, IDLE_POLL_MS, type LeaderLoopName, type LoopName, loopFacts } from './loops.ts';

/** How a loop goes; times in milliseconds. */
export type LoopStatus = {
  /** How long the turn under way has taken; 0: the loop rests. */
  turnMs: number;
  sinceTurnMs: number;
  /** Since when all turns fail; 0: the last one went well. */
  failingMs: number;
};

export type Loop = {
  readonly name: LoopName;
  /** Runs the next turn now; a wake-up during a turn leads to one more. */
  wake(): void;
  status(): LoopStatus;
  stop(): Promise<void>;
};

/** Knows which loops have something to do, so that not each has to look for that. */
export type WorkWatch = {
  /** `hasWork`: SQL that is true when a turn would find something to do. */
  add(
    loop: Pick<Loop, 'name' | 'wake'>,
    hasWork: string,
  ): {
    /** Nothing has woken the loop since the watch looked, and there was nothing. */
    isIdle(): boolean;
    woken(): void;
  };
};

const FIRST_BACK_OFF_MS = 250;
const LONGEST_BACK_OFF_MS = 5_000;

type LoopOptions = {
  /** Where it differs from the list. */
  pollMs?: () => number;
  /** Whether another process does this while nothing wakes it. */
  standsAside?: (() => boolean) | undefined;
  /** Its turns come seldom while the watch finds nothing for it; without a watch it looks by itself. */
  work?: { watch: WorkWatch | undefined; hasWork: string; idlePollMs?: () => number };
  logger: Logger;
  /** `isIdle`: nothing is known that the turn could find. */
  turn: (isIdle: boolean) => Promise<boolean>;
} & (
  | { name: Exclude<LoopName, LeaderLoopName> }
  /** Other workers make no turns. */
  | { name: LeaderLoopName; isLeader: () => boolean }
);

/**
 * Runs `turn` until it says that there is nothing left, then waits for `wake` or as long as `LOOPS` says.
 * A failing turn (database or Temporal away) is retried after a growing wait; nothing spins.
 */
export function startLoop(options: LoopOptions): Loop {
  const pollMs = options.pollMs ?? (() => loopFacts(options.name).pollMs);
  const isIdle = () => watched?.isIdle() === true;
  const turns = makeTurns(options, isIdle);
  const restMs = () => {
    if (isIdle()) return options.work?.idlePollMs?.() ?? IDLE_POLL_MS;
    return options.standsAside?.() === true ? ASIDE_POLL_MS : pollMs();
  };
  let stopping = false;
  let woken = false;
  let pause: Pause | null = null;

  const run = async () => {
    while (!stopping) {
      woken = false;
      const more = await turns.run();
      const backOffMs = turns.backOffMs();
      if (stopping || (backOffMs === 0 && (more || woken))) continue;
      pause = startPause(backOffMs > 0 ? backOffMs : restMs());
      await pause.ended;
      pause = null;
    }
  };
  const loop: Loop = {
    name: options.name,
    wake: () => {
      watched?.woken();
      woken = true;
      if (turns.backOffMs() === 0) pause?.end();
    },
    status: turns.status,
    stop: async () => {
      stopping = true;
      pause?.end();
      await running;
    },
  };
  const watched = options.work?.watch?.add(loop, options.work.hasWork);
  const running = run();
  return loop;
}

function makeTurns(options: LoopOptions, isIdle: () => boolean) {
  const { name, logger, turn } = options;
  let backOffMs = 0;
  let beganAtMs: number | null = null;
  let endedAtMs = performance.now();
  let failingFromMs = 0;
  return {
    /** How long to wait before the next turn; 0 after one that went well. */
    backOffMs: () => backOffMs,
    run: async (): Promise<boolean> => {
      beganAtMs = performance.now();
      try {
        const more = 'isLeader' in options && !options.isLeader() ? false : await turn(isIdle());
        if (backOffMs > 0) logger.info({ loop: name }, 'loop recovered');
        backOffMs = 0;
        return more;
      } catch (error) {
        if (backOffMs === 0) {
          failingFromMs = performance.now();
          logger.warn({ loop: name, err: error }, 'loop failed, retrying');
        }
        backOffMs = Math.min(LONGEST_BACK_OFF_MS, Math.max(FIRST_BACK_OFF_MS, backOffMs * 2));
        return false;
      } finally {
        endedAtMs = performance.now();
        beganAtMs = null;
      }
    },
    status: (): LoopStatus => ({
      turnMs: beganAtMs === null ? 0 : performance.now() - beganAtMs,
      sinceTurnMs: performance.now() - endedAtMs,
      failingMs: backOffMs === 0 ? 0 : performance.now() - failingFromMs,
    }),
  };
}

type Pause = { ended: Promise<void>; end: () => void };

function startPause(ms: number): Pause {
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  const end = () => {
    clearTimeout(timer);
    resolve();
  };
  return { ended, end };
}
