import { includesType } from '../../../platform/event-type.ts';
import type { WorkflowMode } from '../../endpoint/workflow-mode.ts';
import { type DeliveryLabel, deliveryWorkflowId } from '../../queue/claim.ts';
import type { SendableEndpoint } from '../attempt/send-delivery.ts';
import type { AttemptOutcome } from '../judge-outcome.ts';
import { type DeliveryNews, LOOK_AGAIN, newsOf } from '../run-news.ts';
import type { CalmWatch } from './run-allowance.ts';
import { RunShare } from './run-share.ts';

/** Calls to Temporal; all reject when Temporal is away or refuses. */
export type RunClient = {
  /**
   * Starts the run of a delivery. False: one is open already, or there was one and `news` is the end of the delivery.
   * `held`: the attempt waits for the run in this process.
   */
  start(label: DeliveryLabel, begin: { news: DeliveryNews | null; held: boolean }): Promise<boolean>;
  /** Reports the end of a delivery to its run. False: none is open. */
  end(workflowId: string, news: DeliveryNews): Promise<boolean>;
  /** Reports why a delivery waits to its run, which is started where none is open or able to go on. */
  wait(label: DeliveryLabel, news: DeliveryNews): Promise<void>;
  cancel(workflowId: string): Promise<void>;
};

/** An attempt that takes longer gets its run while it is under way. */
const SLOW_MS = 250;

/** The run of a held attempt comes at once, or the attempt is made without it. */
const HOLD_MS = 2_000;

/** Temporal responds within milliseconds; its client goes on trying for much longer than a report is worth. */
const CALL_WITHIN_MS = 3_000;

/** After a call that failed, for how long no other is made. */
const PAUSE_MS = 1_000;

type RunOptions = {
  calm: CalmWatch;
  onShown: (label: DeliveryLabel) => void;
  onTrouble: (error: unknown) => void;
};

export function labelOf(
  delivery: Pick<DeliveryLabel, 'deliveryId' | 'deliveryDay' | 'eventType' | 'eventId'>,
  { id: endpointId, url: endpointUrl, wabaId, tenantId }: SendableEndpoint,
): DeliveryLabel {
  const { deliveryId, deliveryDay, eventType, eventId } = delivery;
  return { deliveryId, deliveryDay, endpointId, endpointUrl, wabaId, tenantId, eventType, eventId };
}

/** Which runs the deliveries of an event type have at an endpoint. */
export function workflowModeOf(
  { workflows, alwaysWorkflowsFor }: Pick<SendableEndpoint, 'workflows' | 'alwaysWorkflowsFor'>,
  eventType: string,
): WorkflowMode {
  return includesType(alwaysWorkflowsFor, eventType) ? 'always' : workflows;
}

/** An attempt under way that a run shows, or may come to show. */
export class AttemptRun {
  readonly outcome = Promise.withResolvers<AttemptOutcome>();
  readonly #joined = Promise.withResolvers<void>();
  isJoined = false;
  isStarted = false;
  readonly isHeld: boolean;
  /** By the queue, a run was started or was to be: it may be lost, or its start may have failed. */
  readonly wasGivenRun: boolean;
  /** Whether the run that was started for it is new; null: there is none. One that was open looks in its own time. */
  starting: Promise<boolean | null> = Promise.resolve(null);
  timer: NodeJS.Timeout | undefined;

  constructor(wasGivenRun: boolean, isHeld: boolean) {
    this.wasGivenRun = wasGivenRun;
    this.isHeld = isHeld;
  }

  /** Whether a run is to learn of the attempt. */
  get hasRun(): boolean {
    return this.wasGivenRun || this.isStarted;
  }

  /** Whether it is certain that there is a run: it came for the attempt, or was started for it. */
  get isShown(): boolean {
    return this.isJoined || this.isStarted;
  }

  join(): Promise<AttemptOutcome> {
    this.isJoined = true;
    this.#joined.resolve();
    return this.outcome.promise;
  }

  /** Resolves when its run has come for it, when none will come soon, or after half of the time that is left. */
  async held(timeLeftMs: number): Promise<void> {
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, Math.min(HOLD_MS, timeLeftMs / 2));
    const none = this.starting.then((isNew) => (isNew ? late : undefined));
    await Promise.race([this.#joined.promise, none, late]);
    clearTimeout(timer);
  }
}

/**
 * The runs in Temporal that show the deliveries of this process. They own nothing: what becomes of a delivery stands in
 * PostgreSQL, and is reported to its run, if it has one.
 */
export class DeliveryRuns {
  readonly share = new RunShare();
  readonly #options: RunOptions;
  readonly #attempts = new Map<string, AttemptRun>();
  #client: RunClient | null = null;
  #failedAtMs: number | null = null;

  constructor(options: RunOptions) {
    this.#options = options;
  }

  connect(client: RunClient): void {
    this.#client = client;
  }

  /** Whether Temporal is there, as far as the last call shows. */
  isUp(): boolean {
    return this.#client !== null && this.#failedAtMs === null;
  }

  mayStart(): boolean {
    const pausedUntilMs = this.#failedAtMs === null ? 0 : this.#failedAtMs + PAUSE_MS;
    return this.#client !== null && performance.now() >= pausedUntilMs;
  }

  /** Whether traffic is calm, so that each delivery may have a run. */
  isCalm(): boolean {
    return this.mayStart() && this.#options.calm.isCalm();
  }

  /** Notes an attempt that begins; null where no run shows it. `isFirst`: nothing was attempted before. */
  begin(
    label: DeliveryLabel,
    { mode, isFirst, hasRun }: { mode: WorkflowMode; isFirst: boolean; hasRun: boolean },
  ): AttemptRun | null {
    const { calm } = this.#options;
    const isHeld = mode === 'always' && !hasRun && this.mayStart();
    if (mode === 'auto' && isFirst) calm.note();
    const isCalm = mode === 'auto' && isFirst && this.isCalm();
    if (!hasRun && !isHeld && !isCalm) return null;
    const run = new AttemptRun(hasRun, isHeld);
    this.#attempts.set(label.deliveryId, run);
    const start = async () => {
      const isNew = await this.#start(label, { news: null, held: isHeld });
      run.isStarted = isNew !== null;
      return isNew;
    };
    const startSlow = () => {
      if (this.isCalm()) run.starting = start();
    };
    if (isHeld) run.starting = start();
    else if (!hasRun) run.timer = setTimeout(startSlow, SLOW_MS).unref();
    return run;
  }

  /** The outcome of the attempt that is under way here; null when there is none that a run may show. */
  join(deliveryId: string): Promise<AttemptOutcome> | null {
    return this.#attempts.get(deliveryId)?.join() ?? null;
  }

  /** The end of an attempt; null: it was not made or not recorded. Reports it to the run, or starts one that shows it. */
  async end(run: AttemptRun | null, label: DeliveryLabel, outcome: AttemptOutcome | null): Promise<void> {
    if (run !== null) {
      clearTimeout(run.timer);
      if (this.#attempts.get(label.deliveryId) === run) this.#attempts.delete(label.deliveryId);
      run.outcome.resolve(outcome ?? LOOK_AGAIN);
      await run.starting;
    }
    if (outcome !== null) this.share.note(await this.#show(run, label, outcome));
  }

  async #show(run: AttemptRun | null, label: DeliveryLabel, outcome: AttemptOutcome): Promise<boolean> {
    if (run?.isJoined === true) return true;
    if (run?.hasRun === true) return await this.#report(label, newsOf(outcome));
    const isShown = 'run' in outcome ? outcome.run !== null : run !== null && this.isCalm();
    return isShown && (await this.#start(label, { news: newsOf(outcome), held: false })) !== null;
  }

  /** Cancels the run of a delivery that was dropped, so that it does not end as completed. */
  async cancel(workflowId: string): Promise<void> {
    await this.#call((client) => client.cancel(workflowId));
  }

  /** Whether the run of the delivery is new; null: there is none. */
  async #start(
    label: DeliveryLabel,
    begin: { news: DeliveryNews | null; held: boolean },
  ): Promise<boolean | null> {
    const { news } = begin;
    const isNew = await this.#call((client) => client.start(label, begin));
    if (isNew === true) this.#options.onShown(label);
    if (isNew === false && news !== null) await this.#report(label, news);
    return isNew;
  }

  /** Reports to the run of a delivery, and starts one where it is lost. False: Temporal is away. */
  async #report(label: DeliveryLabel, news: DeliveryNews): Promise<boolean> {
    const reported = await this.#call(async (client) => {
      if (news.end === null) await client.wait(label, news);
      else if (!(await client.end(deliveryWorkflowId(label), news)))
        await client.start(label, { news, held: false });
      return true;
    });
    if (reported !== null) this.#options.onShown(label);
    return reported !== null;
  }

  async #call<Result>(call: (client: RunClient) => Promise<Result>): Promise<Result | null> {
    if (this.#client === null || !this.mayStart()) return null;
    try {
      const result = await inTime(call(this.#client));
      this.#failedAtMs = null;
      return result;
    } catch (error) {
      if (this.#failedAtMs === null) this.#options.onTrouble(error);
      this.#failedAtMs = performance.now();
      return null;
    }
  }
}

/** Rejects what takes too long. A call that succeeds later does no harm: leases keep attempts apart. */
async function inTime<T>(call: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error('Temporal did not respond in time')), CALL_WITHIN_MS);
  try {
    return await Promise.race([call, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
