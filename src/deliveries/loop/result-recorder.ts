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
};

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

type RecorderOptions = {
  giveUpMs: number;
  /** Claims what follows in the lanes of a group; null while it would not be attempted. */
  followerClaims: () => DirectClaims | null;
  /** Called for each part of a group as it is recorded. */
  onRecorded: (recorded: Recorded) => void;
  onOrphans: (orphans: readonly Orphan[], token: string) => void;
};

/**
 * Records attempts in groups of whatever is there. While the database is away, or refuses everything, a group is tried
 * again until `giveUpMs`, when its leases have ended and other processes have its deliveries. A group that it refuses
 * otherwise is halved until what it refuses is found: one tenant's response must not harm another's.
 */
export class ResultRecorder {
  readonly #tools: SettlementTools;
  readonly #options: RecorderOptions;
  /** What the database refused of a single attempt, so that the next try leaves it out. */
  readonly #refusals = new WeakMap<MadeAttempt, unknown>();
  #waiting: MadeAttempt[] = [];
  #running = false;

  constructor(tools: SettlementTools, options: RecorderOptions) {
    this.#tools = tools;
    this.#options = options;
  }

  add(attempt: MadeAttempt): void {
    this.#waiting.push(attempt);
    if (this.#running) return;
    this.#running = true;
    setImmediate(() => void this.#run());
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      const group = this.#waiting.splice(0, GROUP);
      const startMs = performance.now();
      const isFollowed = await this.#record(group);
      if (isFollowed || this.#waiting.length >= GROUP) continue;
      await sleep(Math.min(MAX_REST_MS, REST_TIMES * (performance.now() - startMs)));
    }
    this.#running = false;
  }

  /** Returns whether something followed in the lanes of the group. */
  async #record(group: readonly MadeAttempt[]): Promise<boolean> {
    const deadlineMs = performance.now() + this.#options.giveUpMs;
    const parts = [group];
    let isFollowed = false;
    for (let part = parts.shift(); part !== undefined; part = parts.shift()) {
      try {
        const { outcomes, promoted, followers } = await this.#settle(part);
        isFollowed ||= promoted > 0 || followers.length > 0;
        this.#tell(part, outcomes, promoted);
      } catch (error) {
        const canRecord = await this.#tools.gate.check();
        const isFound = part.some((attempt) => this.#refusals.has(attempt));
        if (canRecord && !isTransientError(error) && !isFound) parts.unshift(...this.#halvesOf(part, error));
        else if (performance.now() > deadlineMs) this.#tell(part, [], 0);
        else {
          parts.unshift(part);
          await sleep(RETRY_MS);
        }
      }
    }
    return isFollowed;
  }

  #tell(part: readonly MadeAttempt[], outcomes: Settlement['outcomes'], promoted: number): void {
    const recorded = part.map((attempt, index) => ({ attempt, outcome: outcomes[index] ?? null }));
    this.#options.onRecorded({ outcomes: recorded, promoted });
  }

  #halvesOf(part: readonly MadeAttempt[], error: unknown): (readonly MadeAttempt[])[] {
    const [only] = part;
    if (only !== undefined && part.length === 1) {
      this.#refusals.set(only, error);
      return [part];
    }
    const half = part.length >> 1;
    return [part.slice(0, half), part.slice(half)];
  }

  async #settle(part: readonly MadeAttempt[]): Promise<Settlement> {
    const [first] = part;
    if (first !== undefined && this.#refusals.has(first))
      return await settleRefused(this.#tools, first, this.#refusals.get(first));
    const claims = part.some(isFailure) ? null : this.#options.followerClaims();
    if (claims === null) return await settleAttempts(this.#tools, part);
    const { token, leaseMs } = claims;
    // Replays stand back behind first attempts, so what follows them goes over the queue.
    const followed = part.filter(({ endpoint, replay }) => !replay && claims.take(endpoint.id));
    const behind = new Set(followed.map(({ deliveryId }) => deliveryId));
    try {
      const settlement = await settleAttempts(this.#tools, part, { token, leaseMs, behind });
      claims.carry(settlement.followers);
      if (settlement.orphans.length > 0) this.#options.onOrphans(settlement.orphans, token);
      return settlement;
    } catch (error) {
      claims.cancel();
      throw error;
    }
  }
}
