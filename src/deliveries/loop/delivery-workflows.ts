import type { AttemptOutcome } from '../attempt/attempt-outcome.ts';
import type { DeliveryLabel } from '../queue/delivery-label.ts';
import type { StartAllowance } from './start-allowance.ts';

/**
 * Which deliveries get a `deliverEvent` workflow. `auto`: first attempts as far as the allowance goes, and failed ones.
 * `always`: every one, and it is POSTed inside its workflow. `failures`: failed ones.
 */
export type WorkflowMode = 'auto' | 'always' | 'failures';

/** Starts the workflow of a delivery unless a run of it is open; rejects when Temporal is away or refuses. */
type StartWorkflow = (label: DeliveryLabel) => Promise<{ workflowId: string; isNew: boolean }>;

/** An attempt of this process that a workflow carries. */
export type CarriedAttempt = {
  readonly workflowId: string;
  /** The workflow could not be started, or an earlier run is open, which may just be ending, and did not join. */
  hasFailed(): boolean;
  /** False once it is known that the workflow could not be started. */
  readonly started: Promise<boolean>;
  /** Whether the workflow's activity has come for the attempt; false when it did not in time or was not started. */
  readonly joined: Promise<boolean>;
  /** Tells the workflow what came of the attempt. */
  end(outcome: AttemptOutcome): void;
};

export type DeliveryWorkflows = {
  readonly mode: WorkflowMode;
  /** Temporal answers: workflows can be started from now on. */
  connect(start: StartWorkflow): void;
  /** Whether attempts may begin: `always` stands still while Temporal is away. */
  isReady(): boolean;
  /** Starts the workflow of an attempt that begins; null where it gets none. `isFirst`: nothing was attempted before. */
  carry(label: DeliveryLabel, workflowId: string, isFirst: boolean): CarriedAttempt | null;
  /** What comes of the attempt that this process has under way for the workflow; null when there is none. */
  join(deliveryId: string): Promise<AttemptOutcome> | null;
  /** Starts workflows for deliveries whose first attempt failed. */
  startAll(labels: readonly DeliveryLabel[]): Promise<{ started: Started[]; failed: DeliveryLabel[] }>;
};

type Started = DeliveryLabel & { workflowId: string };

/** The activity of a workflow that was started here comes at once, or not at all. */
const JOIN_WITHIN_MS = 5_000;

/** What came of an attempt is kept for a workflow that comes late. */
const KEEP_OUTCOME_MS = 30_000;

/** Temporal answers within milliseconds; its client goes on trying for much longer than a retry may have to wait. */
const START_WITHIN_MS = 3_000;

/** After a start that failed, others wait for so long where nothing is attempted without a workflow. */
const PAUSE_MS = 1_000;

/** The workflows of the deliveries that this process attempts. */
export function makeDeliveryWorkflows(options: {
  mode: WorkflowMode;
  allowance: StartAllowance;
  onTrouble: (error: unknown) => void;
}): DeliveryWorkflows {
  const { mode, allowance, onTrouble } = options;
  const carried = new Map<string, Carried>();
  let start: StartWorkflow | null = null;
  let pausedUntilMs = 0;

  const failed = (error: unknown) => {
    if (performance.now() >= pausedUntilMs) onTrouble(error);
    pausedUntilMs = performance.now() + PAUSE_MS;
  };
  const isReady = () => mode !== 'always' || (start !== null && performance.now() >= pausedUntilMs);
  const mayStart = () => start !== null && performance.now() >= pausedUntilMs;
  const isWanted = (isFirst: boolean) =>
    mode === 'always' || (mode === 'auto' && isFirst && mayStart() && allowance.take());

  return {
    mode,
    connect(startWorkflow) {
      start = startWorkflow;
    },
    isReady,
    carry(label, workflowId, isFirst) {
      if (start === null || !isWanted(isFirst)) return null;
      const { deliveryId } = label;
      const attempt: Carried = makeCarried(workflowId, () => {
        if (carried.get(deliveryId) === attempt) carried.delete(deliveryId);
      });
      carried.set(deliveryId, attempt);
      inTime(start(label)).then(
        ({ isNew }) => attempt.begin(isNew),
        (error) => {
          attempt.fail();
          failed(error);
        },
      );
      return attempt;
    },
    join(deliveryId) {
      const attempt = carried.get(deliveryId);
      attempt?.join();
      return attempt?.outcome ?? null;
    },
    async startAll(labels) {
      const started: Started[] = [];
      const notStarted: DeliveryLabel[] = [];
      const startOne = async (label: DeliveryLabel) => {
        try {
          if (start === null || !mayStart()) notStarted.push(label);
          else started.push({ ...label, workflowId: (await inTime(start(label))).workflowId });
        } catch (error) {
          failed(error);
          notStarted.push(label);
        }
      };
      await Promise.all(labels.map(startOne));
      return { started, failed: notStarted };
    },
  };
}

type Carried = CarriedAttempt & {
  outcome: Promise<AttemptOutcome>;
  join(): void;
  fail(): void;
  /** Its workflow runs; if that was open before, it is carried only if that joins. */
  begin(isNew: boolean): void;
};

function makeCarried(workflowId: string, forget: () => void): Carried {
  const joined = Promise.withResolvers<boolean>();
  const outcome = Promise.withResolvers<AttemptOutcome>();
  const started = Promise.withResolvers<boolean>();
  let hasFailed = false;
  let isDoubtful = false;
  let hasJoined = false;
  let hasEnded = false;
  const patience = setTimeout(() => joined.resolve(false), JOIN_WITHIN_MS);
  return {
    workflowId,
    started: started.promise,
    joined: joined.promise,
    outcome: outcome.promise,
    hasFailed: () => hasFailed || (isDoubtful && !hasJoined),
    join() {
      hasJoined = true;
      // What came of it is told once: a later activity of the workflow makes attempts of its own.
      if (hasEnded) forget();
      clearTimeout(patience);
      joined.resolve(true);
    },
    begin(isNew) {
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
      clearTimeout(patience);
      outcome.resolve(result);
      if (hasJoined) forget();
      else setTimeout(forget, KEEP_OUTCOME_MS).unref();
    },
  };
}

/** Rejects where there is no answer in time. A start that succeeds later does no harm: leases keep attempts apart. */
async function inTime<T>(answer: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error('Temporal did not answer in time')), START_WITHIN_MS);
  try {
    return await Promise.race([answer, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
