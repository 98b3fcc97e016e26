import { setTimeout as sleep } from 'node:timers/promises';
import { isTransientError } from '../../platform/postgres/error-class.ts';
import {
  isFailure,
  type MadeAttempt,
  type Settlement,
  type SettlementTools,
  settleAttempts,
  settleRefused,
} from '../attempt/settle-attempts.ts';
import type { SettledOutcome } from '../judge-outcome.ts';
import type { Orphan } from '../queue/claim.ts';
import type { DirectClaims } from '../queue/enqueue.ts';

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
 * lanes in which one follows another: what is recorded there lets the next one go. A longer rest delays those whose
 * first delivery comes in the middle of it: with 20 ms, sent, delivered and read of a message took 20 ms instead of 7.
 */
const REST_TIMES = 2;
const MAX_REST_MS = 20;

/**
 * Records attempts in groups of whatever is there. While the database is away, or refuses everything, a group is tried
 * again until `giveUpMs`, when its leases have ended and its deliveries are somebody else's. A group that it refuses
 * otherwise is halved until what it refuses is found: one tenant's answer must not harm another's.
 */
export function makeResultRecorder(
  tools: SettlementTools,
  options: {
    giveUpMs: number;
    /** Claims what follows in the lanes of a group; null while nobody would attempt it. */
    followerClaims: () => DirectClaims | null;
    /** Called for each part of a group as it is recorded. */
    onRecorded: (recorded: Recorded) => void;
    onOrphans: (orphans: readonly Orphan[], token: string) => void;
  },
): ResultRecorder {
  let waiting: MadeAttempt[] = [];
  let running = false;

  const run = async () => {
    while (waiting.length > 0) {
      const group = waiting.slice(0, GROUP);
      waiting = waiting.slice(GROUP);
      const startMs = performance.now();
      const isFollowed = await record(group);
      if (isFollowed || waiting.length >= GROUP) continue;
      await sleep(Math.min(MAX_REST_MS, REST_TIMES * (performance.now() - startMs)));
    }
    running = false;
  };

  /** Returns whether something followed in the lanes of the group. */
  const record = async (group: readonly MadeAttempt[]): Promise<boolean> => {
    const deadlineMs = performance.now() + options.giveUpMs;
    const parts = [group];
    let isFollowed = false;
    for (let part = parts.shift(); part !== undefined; part = parts.shift()) {
      try {
        const recorded = recordedOf(part, await settle(part));
        isFollowed ||= recorded.isFollowed;
        options.onRecorded(recorded);
      } catch (error) {
        const canRecord = await tools.gate.check();
        const isFound = part.some((attempt) => refusals.has(attempt));
        if (canRecord && !isTransientError(error) && !isFound) parts.unshift(...halvesOf(part, error));
        else if (performance.now() > deadlineMs) options.onRecorded(unrecorded(part));
        else {
          parts.unshift(part);
          await sleep(RETRY_MS);
        }
      }
    }
    return isFollowed;
  };

  /** What the database refused of a single attempt, so that the next try leaves it out. */
  const refusals = new WeakMap<MadeAttempt, unknown>();

  const halvesOf = (part: readonly MadeAttempt[], error: unknown): (readonly MadeAttempt[])[] => {
    const [only] = part;
    if (only !== undefined && part.length === 1) {
      refusals.set(only, error);
      return [part];
    }
    const half = part.length >> 1;
    return [part.slice(0, half), part.slice(half)];
  };

  const settle = async (part: readonly MadeAttempt[]): Promise<Settlement> => {
    const [first] = part;
    if (first !== undefined && refusals.has(first))
      return await settleRefused(tools, first, refusals.get(first));
    const claims = part.some(isFailure) ? null : options.followerClaims();
    if (claims === null) return await settleAttempts(tools, part);
    const { token, leaseMs } = claims;
    // Replays stand back behind first attempts, so what follows them goes over the queue.
    const followed = part.filter(({ endpoint, replay }) => !replay && claims.take(endpoint.id));
    const behind = new Set(followed.map(({ deliveryId }) => deliveryId));
    try {
      const settlement = await settleAttempts(tools, part, { token, leaseMs, behind });
      claims.carry(settlement.followers);
      if (settlement.orphans.length > 0) options.onOrphans(settlement.orphans, token);
      return settlement;
    } catch (error) {
      claims.cancel();
      throw error;
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
