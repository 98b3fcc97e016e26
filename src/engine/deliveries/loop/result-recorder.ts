import { setTimeout as sleep } from 'node:timers/promises';
import { isTransientError } from '../../../platform/postgres/error-class.ts';
import type { DirectClaims } from '../../queue/enqueue.ts';
import { isFailure, isPlainSuccess, type MadeAttempt } from '../attempt/made-attempt.ts';
import {
  type Settlement,
  type SettlementTools,
  settleAttempts,
  settleRefused,
} from '../attempt/settle-attempts.ts';
import type { SettledOutcome } from '../judge-outcome.ts';

export type Recorded<Attempt extends MadeAttempt = MadeAttempt> = {
  /** Null: it could not be recorded, and comes again when its lease has ended. */
  outcomes: { attempt: Attempt; outcome: SettledOutcome | null }[];
  promoted: number;
};

/** Per transaction; a transaction per result would be the slowest part of a delivery. */
const GROUP = 250;

const RETRY_MS = 250;

/** A row that another transaction has locked is tried again after as long as it was locked already, within these limits. */
const LOCKED_RETRY_MS = { shortest: 5, longest: 100 };

/** Transactions of ours hold rows for less; after this time there may be many of them, and they are tried more rarely. */
const LONG_LOCK_MS = 250;
const LONG_LOCKED_RETRY_MS = { shortest: LONG_LOCK_MS, longest: 1_000 };

/**
 * After a group the recorder rests for twice as long as the group took, within these limits. What comes meanwhile goes
 * together: fewer commits, and the busier the machine, the more it matters. A delivery that comes alone never waits, nor do
 * lanes in which deliveries follow one another: what is recorded there lets the next one go, so it ends the rest.
 */
const REST_MS = { shortest: 10, longest: 20 };

/**
 * Successes rest on while nothing waits for them: no run, no delivery that was published behind others a moment ago, none
 * that wants their slots, and fewer results than this. A process that dies meanwhile has sent so many webhooks that will be sent again.
 */
const UNAWAITED = { restMs: 100, most: 64, afterFollowersMs: 250 };

/** `run`: the workflow that shows the delivery, and waits for how it ends. */
type Recordable = MadeAttempt & { run?: object | null };

type RecorderOptions<Attempt extends MadeAttempt> = {
  giveUpMs: number;
  /** Claims what follows in the lanes of a group; null while it would not be attempted. */
  followerClaims: () => DirectClaims | null;
  /** Whether others may wait for the slot that the attempt holds until it is recorded. */
  isSlotWanted: (attempt: Attempt) => boolean;
  onRecorded: (recorded: Recorded<Attempt>) => void;
  /** Called for results that cannot be recorded because others have locked their rows for long. */
  onHeld: (attempts: readonly Attempt[]) => void;
};

type Results<Attempt> = {
  waiting: Attempt[];
  isRunning: boolean;
  endRest: () => void;
  endLongRest: () => void;
};

const noResults = <Attempt>(): Results<Attempt> => {
  return { waiting: [], isRunning: false, endRest: () => undefined, endLongRest: () => undefined };
};

/**
 * Records attempts in groups of whatever is there. While the database is away, or refuses everything, a group is tried
 * again until `giveUpMs`, when its leases have ended and other processes have its deliveries. A group that it refuses
 * otherwise is halved until what it refuses is found: one tenant's response must not harm another's. A row that another
 * transaction has locked joins a later group, so the other lanes of its group do not wait for it. Failures are recorded
 * beside successes: they take longer, and may wait for the row of an endpoint.
 */
export class ResultRecorder<Attempt extends Recordable> {
  readonly #tools: SettlementTools;
  readonly #options: RecorderOptions<Attempt>;
  readonly #successes = noResults<Attempt>();
  readonly #others = noResults<Attempt>();
  #hurriesUntilMs = 0;

  constructor(tools: SettlementTools, options: RecorderOptions<Attempt>) {
    this.#tools = tools;
    this.#options = options;
  }

  add(attempt: Attempt): void {
    const results = isPlainSuccess(attempt) ? this.#successes : this.#others;
    results.waiting.push(attempt);
    if (attempt.isFollowed === true) results.endRest();
    if (results.waiting.length >= UNAWAITED.most || this.#isAwaited(attempt)) results.endLongRest();
    if (results.isRunning) return;
    results.isRunning = true;
    setImmediate(() => void this.#run(results));
  }

  /** Deliveries were published behind others: results let them go. */
  hurry(): void {
    this.#hurriesUntilMs = performance.now() + UNAWAITED.afterFollowersMs;
    this.#successes.endLongRest();
  }

  async #run(results: Results<Attempt>): Promise<void> {
    while (results.waiting.length > 0) {
      const group = results.waiting.splice(0, GROUP);
      const startMs = performance.now();
      const isFollowed = await this.#record(group);
      const isAwaited = results.waiting.some((attempt) => attempt.isFollowed === true);
      if (isFollowed || isAwaited || results.waiting.length >= GROUP) continue;
      const restMs = within(REST_MS, 2 * (performance.now() - startMs));
      const wasEnded = await this.#rest(results, restMs, false);
      const mayRestOn = results === this.#successes && performance.now() > this.#hurriesUntilMs;
      const { waiting } = results;
      if (wasEnded || !mayRestOn || waiting.length >= UNAWAITED.most) continue;
      if (!waiting.some((attempt) => this.#isAwaited(attempt)))
        await this.#rest(results, UNAWAITED.restMs - restMs, true);
    }
    results.isRunning = false;
  }

  /** Whether a run waits for it, or a delivery for its slot. */
  #isAwaited(attempt: Attempt): boolean {
    return (attempt.run ?? null) !== null || this.#options.isSlotWanted(attempt);
  }

  /** Returns whether it was ended. */
  async #rest(results: Results<Attempt>, restMs: number, isLong: boolean): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const timer = setTimeout(resolve, restMs, false);
    results.endRest = () => resolve(true);
    if (isLong) results.endLongRest = results.endRest;
    const wasEnded = await promise;
    clearTimeout(timer);
    return wasEnded;
  }

  /** Returns whether something followed in the lanes of the group. */
  async #record(group: readonly Attempt[]): Promise<boolean> {
    const deadlineMs = performance.now() + this.#options.giveUpMs;
    const parts = partsOf(group);
    let isFollowed = false;
    for (let part = parts.shift(); part !== undefined; part = parts.shift()) {
      try {
        const { outcomes, promoted, followers, locked } = await this.#settle(part);
        isFollowed ||= promoted > 0 || followers.length > 0;
        this.#tell(part, outcomes, { promoted, later: this.#postpone(locked) });
      } catch (error) {
        const canRecord = await this.#tools.gate.check();
        const isFound = part.some(isRefused);
        if (canRecord && !isTransientError(error) && !isFound) parts.unshift(...halvesOf(part, error));
        else if (performance.now() > deadlineMs) this.#tell(part, []);
        else {
          parts.unshift(part);
          await sleep(RETRY_MS);
        }
      }
    }
    return isFollowed;
  }

  /** Lets what was locked join a later group until its time is over; returns what still has time. */
  #postpone(locked: readonly Attempt[]): ReadonlySet<Attempt> {
    const nowMs = performance.now();
    const lockedMs = (attempt: Attempt) => nowMs - (attempt.recording.lockedFromMs ?? nowMs);
    const inTime = locked.filter((attempt) => lockedMs(attempt) < this.#options.giveUpMs);
    for (const { recording } of inTime) recording.lockedFromMs ??= nowMs;
    const isLong = (attempt: Attempt) => lockedMs(attempt) >= LONG_LOCK_MS;
    const { long = [], short = [] } = Object.groupBy(inTime, (attempt) =>
      isLong(attempt) ? 'long' : 'short',
    );
    this.#addLater(short, within(LOCKED_RETRY_MS, Math.max(...short.map(lockedMs))));
    this.#addLater(long, within(LONG_LOCKED_RETRY_MS, Math.max(...long.map(lockedMs))));
    this.#options.onHeld(long);
    return new Set(inTime);
  }

  #addLater(attempts: readonly Attempt[], waitMs: number): void {
    const again = () => {
      for (const attempt of attempts) this.add(attempt);
    };
    if (attempts.length > 0) setTimeout(again, waitMs);
  }

  #tell(
    part: readonly Attempt[],
    outcomes: Settlement<Attempt>['outcomes'],
    { promoted = 0, later = new Set() as ReadonlySet<Attempt> } = {},
  ): void {
    const recorded = part.map((attempt, index) => ({ attempt, outcome: outcomes[index] ?? null }));
    this.#options.onRecorded({
      outcomes: recorded.filter(({ attempt }) => !later.has(attempt)),
      promoted,
    });
  }

  async #settle(part: readonly Attempt[]): Promise<Settlement<Attempt>> {
    const [first] = part;
    const refusal = first?.recording.refusal ?? null;
    if (first !== undefined && refusal !== null)
      return await settleRefused(this.#tools, first, refusal.error);
    const claims = part.every(isPlainSuccess) ? this.#options.followerClaims() : null;
    if (claims === null) return await settleAttempts(this.#tools, part);
    const { token, leaseMs } = claims;
    // Replays stand back behind first attempts, so what follows them goes over the queue.
    const followed = part.filter(({ endpoint, replay }) => !replay && claims.take(endpoint.id));
    const behind = new Set(followed.map(({ deliveryId }) => deliveryId));
    try {
      const settlement = await settleAttempts(this.#tools, part, { token, leaseMs, behind });
      claims.carry(settlement.followers);
      return settlement;
    } catch (error) {
      claims.cancel();
      throw error;
    }
  }
}

function isRefused({ recording }: MadeAttempt): boolean {
  return recording.refusal !== null;
}

/** A refused attempt stands alone, and failures apart: where all succeeded, endpoints in trouble are known to be back. */
function partsOf<Attempt extends MadeAttempt>(group: readonly Attempt[]): (readonly Attempt[])[] {
  const refused = group.filter(isRefused).map((attempt) => [attempt]);
  const others = group.filter((attempt) => !isRefused(attempt));
  const [failed, succeeded] = [others.filter(isFailure), others.filter((attempt) => !isFailure(attempt))];
  return [failed, succeeded, ...refused].filter((part) => part.length > 0);
}

function halvesOf<Attempt extends MadeAttempt>(
  part: readonly Attempt[],
  error: unknown,
): (readonly Attempt[])[] {
  const [only] = part;
  if (only !== undefined && part.length === 1) {
    only.recording.refusal = { error };
    return [part];
  }
  const half = part.length >> 1;
  return [part.slice(0, half), part.slice(half)];
}

function within({ shortest, longest }: { shortest: number; longest: number }, ms: number): number {
  return Math.min(longest, Math.max(shortest, ms));
}
