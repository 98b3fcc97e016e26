import type { AttemptOutcome } from '../judge-outcome.ts';
import type { DeliveryLabel } from '../queue/claim.ts';

/**
 * Which deliveries get a `deliverEvent` workflow. `auto`: first attempts while it is calm, and failed ones.
 * `always`: every one, and it is POSTed inside its workflow. `failures`: failed ones.
 */
export type WorkflowMode = 'auto' | 'always' | 'failures';

/** Starts the workflow of a delivery unless a run of it is open; rejects when Temporal is away or refuses. */
type StartWorkflow = (label: DeliveryLabel) => Promise<{ workflowId: string; isNew: boolean }>;

/** An attempt of this process that a workflow carries. */
export type CarriedAttempt = {
  readonly workflowId: string;
  /**
   * False while its workflow is not started yet (`auto`), could not be started, or is an earlier run, which may just be
   * ending and did not join.
   */
  hasWorkflow(): boolean;
  /** False once it is known that there is no workflow. */
  readonly started: Promise<boolean>;
  /** Whether the workflow's activity has come for the attempt; false when it did not in time or was not started. */
  readonly joined: Promise<boolean>;
  /** Tells the workflow what came of the attempt. */
  end(outcome: AttemptOutcome): void;
};

type Started = DeliveryLabel & { workflowId: string };

/** A head start waits until it is known whether more comes at once: then it would take the cores from that. */
const HEAD_START_MS = 250;

/** The activity of a workflow that was started here comes at once, or not at all. */
const JOIN_WITHIN_MS = 5_000;

/** What came of an attempt is kept for a workflow that comes late. */
const KEEP_OUTCOME_MS = 30_000;

/** Temporal responds within milliseconds; its client goes on trying for much longer than a retry may have to wait. */
const START_WITHIN_MS = 3_000;

/** After a start that failed, others wait for so long where nothing is attempted without a workflow. */
const PAUSE_MS = 1_000;

type WorkflowOptions = {
  mode: WorkflowMode;
  calm: CalmWatch;
  /** A head start was made: the delivery has this workflow now. */
  onHeadStart: (started: Started) => void;
  onTrouble: (error: unknown) => void;
};

/** The workflows of the deliveries that this process attempts. */
export class DeliveryWorkflows {
  readonly mode: WorkflowMode;
  readonly #options: WorkflowOptions;
  readonly #carried = new Map<string, Carried>();
  #start: StartWorkflow | null = null;
  #pausedUntilMs = 0;

  constructor(options: WorkflowOptions) {
    this.mode = options.mode;
    this.#options = options;
  }

  /** Temporal is there: workflows can be started from now on. */
  connect(start: StartWorkflow): void {
    this.#start = start;
  }

  /** Whether attempts may begin: `always` stands still while Temporal is away. */
  isReady(): boolean {
    return this.mode !== 'always' || this.#mayStart();
  }

  /**
   * Starts the workflow of an attempt that begins; null where it gets none. `isFirst`: nothing was attempted before.
   * `auto` starts it a moment later, and only if it is calm then.
   */
  carry(label: DeliveryLabel, workflowId: string, isFirst: boolean): CarriedAttempt | null {
    const { calm } = this.#options;
    const isAlways = this.mode === 'always';
    const isHeadStart = this.mode === 'auto' && isFirst;
    if (isHeadStart) calm.note();
    if (this.#start === null || !(isAlways || (isHeadStart && this.#mayStart() && calm.isCalm())))
      return null;
    const { deliveryId } = label;
    const attempt: Carried = makeCarried(workflowId, isAlways, () => {
      if (this.#carried.get(deliveryId) === attempt) this.#carried.delete(deliveryId);
    });
    this.#carried.set(deliveryId, attempt);
    if (isHeadStart) setTimeout(() => void this.#headStart(label, attempt), HEAD_START_MS).unref();
    else void this.#startFor(label, attempt);
    return attempt;
  }

  /** What comes of the attempt that this process has under way for the workflow; null when there is none. */
  join(deliveryId: string): Promise<AttemptOutcome> | null {
    const attempt = this.#carried.get(deliveryId);
    attempt?.join();
    return attempt?.outcome ?? null;
  }

  /** Starts workflows for deliveries whose first attempt failed. */
  async startAll(labels: readonly DeliveryLabel[]): Promise<{ started: Started[]; failed: DeliveryLabel[] }> {
    const started: Started[] = [];
    const failed: DeliveryLabel[] = [];
    const startOne = async (label: DeliveryLabel) => {
      try {
        if (this.#start === null || !this.#mayStart()) failed.push(label);
        else started.push({ ...label, workflowId: (await inTime(this.#start(label))).workflowId });
      } catch (error) {
        this.#pause(error);
        failed.push(label);
      }
    };
    await Promise.all(labels.map(startOne));
    return { started, failed };
  }

  #mayStart(): boolean {
    return this.#start !== null && performance.now() >= this.#pausedUntilMs;
  }

  #pause(error: unknown): void {
    if (performance.now() >= this.#pausedUntilMs) this.#options.onTrouble(error);
    this.#pausedUntilMs = performance.now() + PAUSE_MS;
  }

  async #startFor(label: DeliveryLabel, attempt: Carried): Promise<void> {
    try {
      const start = this.#start?.(label) ?? Promise.reject(new Error('Temporal was never there'));
      attempt.begin((await inTime(start)).isNew);
    } catch (error) {
      attempt.fail();
      this.#pause(error);
    }
  }

  async #headStart(label: DeliveryLabel, attempt: Carried): Promise<void> {
    if (attempt.isOver() || !this.#mayStart() || !this.#options.calm.isCalm()) return attempt.fail();
    await this.#startFor(label, attempt);
    if (attempt.hasWorkflow()) this.#options.onHeadStart({ ...label, workflowId: attempt.workflowId });
  }
}

type Carried = CarriedAttempt & {
  outcome: Promise<AttemptOutcome>;
  join(): void;
  fail(): void;
  /** Its workflow runs; if that was open before, it is carried only if that joins. */
  begin(isNew: boolean): void;
  /** The attempt has ended otherwise than in success: what comes next is decided already. */
  isOver(): boolean;
};

/** `isTrusted`: the workflow is taken for started until it is known that it is not. */
function makeCarried(workflowId: string, isTrusted: boolean, forget: () => void): Carried {
  const joined = Promise.withResolvers<boolean>();
  const outcome = Promise.withResolvers<AttemptOutcome>();
  const started = Promise.withResolvers<boolean>();
  let hasFailed = !isTrusted;
  let isOver = false;
  let isDoubtful = false;
  let hasJoined = false;
  let hasEnded = false;
  const patience = setTimeout(() => joined.resolve(false), JOIN_WITHIN_MS);
  return {
    workflowId,
    started: started.promise,
    joined: joined.promise,
    outcome: outcome.promise,
    hasWorkflow: () => !hasFailed && (!isDoubtful || hasJoined),
    isOver: () => isOver,
    join() {
      hasJoined = true;
      // What came of it is told once: a later activity of the workflow makes attempts of its own.
      if (hasEnded) forget();
      clearTimeout(patience);
      joined.resolve(true);
    },
    begin(isNew) {
      hasFailed = false;
      isDoubtful = !isNew;
      started.resolve(true);
    },
    fail() {
      hasFailed = true;
      started.resolve(false);
      clearTimeout(patience);
      joined.resolve(false);
      forget();
    },
    end(result) {
      hasEnded = true;
      isOver = result.state !== 'delivered';
      clearTimeout(patience);
      outcome.resolve(result);
      if (hasJoined) forget();
      else setTimeout(forget, KEEP_OUTCOME_MS).unref();
    },
  };
}

/** Rejects what takes too long. A start that succeeds later does no harm: leases keep attempts apart. */
async function inTime<T>(start: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error('Temporal did not respond in time')), START_WITHIN_MS);
  try {
    return await Promise.race([start, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** How many workflows may be started; refilled evenly over time. */
type StartAllowance = {
  /** Uses up one start; false when there is none left. */
  take(): boolean;
  /** How many processes share the installation's allowance; at least 1. */
  shareWith(processes: number): void;
};

/** Whether so little is delivered that each delivery may have a workflow beside it. */
type CalmWatch = {
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
  return {
    note: () => {
      if (bucket.left() > -bucket.perSecond() * LONGEST_DEBT_SECONDS) bucket.spend();
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

/** This process's share of what all of them may start. */
function makeBucket(
  perSecondOverall: number,
  savedOverall: number,
  now: () => number = () => performance.now(),
) {
  let processes = 1;
  let left = savedOverall;
  let filledMs = now();
  const perSecond = () => perSecondOverall / processes;
  const refill = () => {
    const earned = ((now() - filledMs) / 1_000) * perSecond();
    // With more processes than may be saved up, each may still start one.
    left = Math.min(Math.max(1, savedOverall / processes), left + earned);
    filledMs = now();
    return left;
  };
  return {
    left: refill,
    perSecond,
    spend: () => {
      left -= 1;
    },
    shareWith(count: number) {
      refill();
      processes = Math.max(1, count);
    },
  };
}
