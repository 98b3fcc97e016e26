import { setTimeout as sleep } from 'node:timers/promises';
import { isTransientError } from '../../database/error-class.ts';
import type { Orphan } from '../../database/session-claims.ts';
import type { SettledOutcome } from '../attempt-outcome.ts';
import {
  isFailure,
  type MadeAttempt,
  type Settlement,
  type SettlementTools,
  settleAttempts,
} from '../settle-attempts.ts';
import type { DirectClaims } from './direct-claims.ts';

export type Recorded = {
  /** Null: it could not be recorded, and comes again when its lease has ended. */
  outcomes: { attempt: MadeAttempt; outcome: SettledOutcome | null }[];
  promoted: number;
  /** Whether something followed in the lanes of these. */
  isFollowed: boolean;
};

export type ResultRecorder = { add(attempt: MadeAttempt): void };

/** Per transaction; a transaction per result would be the slowest part of a delivery. */
const GROUP = 250;

const RETRY_MS = 250;

/**
 * After a group the recorder rests for so many times as long as the group took. What comes meanwhile goes together:
 * fewer commits, and the busier the machine, the more it matters. A delivery that comes alone never waits, nor do
 * lanes in which one follows another: what is recorded there lets the next one go.
 */
const REST_TIMES = 2;
const MAX_REST_MS = 20;

/**
 * Records attempts in groups of whatever is there. While the database is away a group is tried again until `giveUpMs`,
 * when its leases have ended and its deliveries are somebody else's.
 */
export function makeResultRecorder(
  tools: SettlementTools,
  options: {
    giveUpMs: number;
    /** Claims what follows in the lanes of a group; null while nobody would attempt it. */
    followerClaims: () => DirectClaims | null;
    onRecorded: (recorded: Recorded) => void;
    onOrphans: (orphans: readonly Orphan[], token: string) => void;
    onUnrecordable: (error: unknown) => void;
  },
): ResultRecorder {
  let waiting: MadeAttempt[] = [];
  let running = false;

  const run = async () => {
    while (waiting.length > 0) {
      const group = waiting.slice(0, GROUP);
      waiting = waiting.slice(GROUP);
      const startMs = performance.now();
      const recorded = await record(group);
      options.onRecorded(recorded);
      if (recorded.isFollowed || waiting.length >= GROUP) continue;
      await sleep(Math.min(MAX_REST_MS, REST_TIMES * (performance.now() - startMs)));
    }
    running = false;
  };

  const record = async (group: readonly MadeAttempt[]): Promise<Recorded> => {
    const deadlineMs = performance.now() + options.giveUpMs;
    for (;;) {
      try {
        return await settleGroup(group);
      } catch (error) {
        if (!isTransientError(error)) options.onUnrecordable(error);
        if (!isTransientError(error) || performance.now() > deadlineMs) return unrecorded(group);
        await sleep(RETRY_MS);
      }
    }
  };

  const settleGroup = async (group: readonly MadeAttempt[]): Promise<Recorded> => {
    const claims = group.some(isFailure) ? null : options.followerClaims();
    if (claims === null) return await settleOrHalve(tools, group);
    const { token, leaseMs } = claims;
    // Replays stand back behind first attempts, so what follows them goes over the queue.
    const followed = group.filter(({ endpoint, replay }) => !replay && claims.take(endpoint.id));
    const behind = new Set(followed.map(({ deliveryId }) => deliveryId));
    try {
      const settlement = await settleAttempts(tools, group, { token, leaseMs, behind });
      claims.carry(settlement.followers);
      if (settlement.orphans.length > 0) options.onOrphans(settlement.orphans, token);
      return recordedOf(group, settlement);
    } catch (error) {
      claims.cancel();
      if (isTransientError(error)) throw error;
      return await settleOrHalve(tools, group);
    }
  };

  return {
    add(attempt) {
      waiting.push(attempt);
      if (running) return;
      running = true;
      setImmediate(() => void run());
    },
  };
}

function recordedOf(group: readonly MadeAttempt[], { outcomes, promoted, followers }: Settlement): Recorded {
  return {
    outcomes: group.map((attempt, index) => ({ attempt, outcome: outcomes[index] ?? null })),
    promoted,
    isFollowed: promoted > 0 || followers.length > 0,
  };
}

function unrecorded(group: readonly MadeAttempt[]): Recorded {
  return { outcomes: group.map((attempt) => ({ attempt, outcome: null })), promoted: 0, isFollowed: false };
}

/** One tenant's answer must not harm another's: a group that the database refuses is halved until it is found. */
async function settleOrHalve(tools: SettlementTools, group: readonly MadeAttempt[]): Promise<Recorded> {
  try {
    return recordedOf(group, await settleAttempts(tools, group));
  } catch (error) {
    if (isTransientError(error)) throw error;
    const [only] = group;
    if (only !== undefined && group.length === 1) return await settleWithoutAnswer(tools, only, error);
    const half = group.length >> 1;
    const first = await settleOrHalve(tools, group.slice(0, half));
    const second = await settleOrHalve(tools, group.slice(half));
    return {
      outcomes: [...first.outcomes, ...second.outcomes],
      promoted: first.promoted + second.promoted,
      isFollowed: first.isFollowed || second.isFollowed,
    };
  }
}

/** What the receiver sent is the only part that comes from outside, so it is left out. */
async function settleWithoutAnswer(
  tools: SettlementTools,
  attempt: MadeAttempt,
  cause: unknown,
): Promise<Recorded> {
  const { result } = attempt.sent;
  if (result.outcome === 'error') throw cause;
  const bare = { ...result, headers: {}, body: Buffer.from('(could not be stored)') };
  const settlement = await settleAttempts(tools, [{ ...attempt, sent: { ...attempt.sent, result: bare } }]);
  return recordedOf([attempt], settlement);
}
