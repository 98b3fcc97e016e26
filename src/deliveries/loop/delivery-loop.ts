import { randomUUID } from 'node:crypto';
import type { LoopStatus } from '../../platform/loop.ts';
import { tracing } from '../../platform/metrics/metrics.ts';
import { publicDeliveryId } from '../../platform/public-ids.ts';
import { type AttemptTools, isInTime, leaseClockMs, leaseMsFor } from '../attempt/attempt-delivery.ts';
import {
  type EndpointCache,
  makeEndpointCache,
  type SendableEndpoint,
  sendDelivery,
} from '../attempt/send-delivery.ts';
import type { MadeAttempt } from '../attempt/settle-attempts.ts';
import { recordWorkflow } from '../delivery-log.ts';
import type { AttemptOutcome } from '../judge-outcome.ts';
import {
  type ClaimedDelivery,
  claimDue,
  claimProbes,
  type DeliveryLabel,
  deliveryWorkflowId,
  type Orphan,
  releaseClaims,
} from '../queue/claim.ts';
import type { DirectClaims } from '../queue/enqueue.ts';
import { dropOrphans } from '../queue/remove.ts';
import { leaveToWorkflow, retryInLoop } from '../queue/sweep.ts';
import { AttemptSlots, type UnderWay } from './attempt-limits.ts';
import { type Begun, DueFinder, makeDirectClaims } from './claiming.ts';
import type { CarriedAttempt, DeliveryWorkflows } from './delivery-workflows.ts';
import { type Recorded, ResultRecorder } from './result-recorder.ts';

/** Beside the wake-ups: rate limits and leases end by themselves. */
const BUSY_POLL_MS = 50;
const IDLE_POLL_MS = 250;
const BACK_OFF_MS = 500;

/** Probes that one look starts. */
const PROBES_AT_ONCE = 20;

/** Attempts that wait for their workflows hold a slot, and Temporal is slower than the network. */
const ALWAYS_SLOTS = { quick: 40, most: 180 };

export type LoopCounts = { claimed: number; delivered: number; failing: number; lost: number };

export type LoopTools = AttemptTools & { workflows: DeliveryWorkflows };

/**
 * Delivers: claims what is due as slots get free, attempts side by side, records in groups. It runs as long as its
 * process and needs nothing but PostgreSQL; workflows show what it does and carry what an operator may have to act on.
 */
export class DeliveryLoop {
  readonly #tools: LoopTools;
  readonly #leaseMs: number;
  readonly #endpoints: EndpointCache;
  readonly #recorder: ResultRecorder;
  readonly #slots: AttemptSlots;
  readonly #due: DueFinder;
  readonly #made = new WeakMap<MadeAttempt, { underWay: UnderWay; carried: CarriedAttempt | null }>();
  readonly #counts: LoopCounts = { claimed: 0, delivered: 0, failing: 0, lost: 0 };
  #running: Promise<void> | null = null;
  #stopping = false;
  /** The workflow that shows this loop at present. */
  #shownBy: string | null = null;
  /** All slots did not suffice at the last claim: new deliveries must not overtake what may still wait. */
  #full = false;
  #woken = false;
  #interrupt: (() => void) | null = null;
  #turnedAtMs = performance.now();
  #failingFromMs: number | null = null;

  constructor(tools: LoopTools) {
    this.#tools = tools;
    this.#leaseMs = leaseMsFor(tools.defaults.timeoutMs);
    this.#slots = new AttemptSlots(tools.workflows.mode === 'always' ? ALWAYS_SLOTS : undefined);
    this.#due = new DueFinder(tools);
    this.#endpoints = makeEndpointCache({ ...tools, onUnreadable: (_id, error) => tools.onTrouble(error) });
    this.#recorder = new ResultRecorder(tools, {
      giveUpMs: this.#leaseMs,
      followerClaims: () => this.#followerClaims(),
      onRecorded: (recorded) => this.#onRecorded(recorded),
      onOrphans: (orphans, token) => void this.#drop(orphans, token),
    });
  }

  start(): void {
    this.#running ??= this.#claimLoop();
  }

  /** Claims nothing more; what is under way goes on. */
  stopClaiming(): void {
    this.#stopping = true;
    this.wake();
  }

  /** Resolves when nothing is claimed any more, no attempt is under way, and all are recorded. */
  async drained(): Promise<void> {
    this.stopClaiming();
    await this.#running;
    while (this.#slots.taken() > 0) await sleep(20);
  }

  /** Attempts name this workflow as theirs, unless they have one of their own; null: none shows the loop. */
  showIn(workflowId: string | null): void {
    this.#shownBy = workflowId;
  }

  isShown(): boolean {
    return this.#shownBy !== null;
  }

  /** Deliveries that are claimed, being sent or being recorded. */
  inFlight(): number {
    return this.#slots.taken();
  }

  /** Of the claims; attempts under way have time-outs of their own. */
  status(): LoopStatus {
    const nowMs = performance.now();
    const failingMs = this.#failingFromMs === null ? 0 : nowMs - this.#failingFromMs;
    const sinceTurnMs = nowMs - this.#turnedAtMs;
    return { turnMs: sinceTurnMs, sinceTurnMs, failingMs };
  }

  counts(): LoopCounts {
    return { ...this.#counts };
  }

  /** Something may have become claimable. */
  wake(): void {
    this.#woken = true;
    this.#interrupt?.();
  }

  /** What comes of the attempt that is under way here for the workflow of this delivery; null when there is none. */
  join(deliveryId: string): Promise<AttemptOutcome> | null {
    return this.#tools.workflows.join(deliveryId);
  }

  /** Lets a publisher of this process claim what it inserts; null while nothing can be attempted at once. */
  directClaims(): DirectClaims | null {
    return this.#claims((endpointId) => this.#slots.free() > 0 && this.#mayTake(endpointId));
  }

  /** Attempts one delivery at each endpoint whose probe is due. */
  async probe(): Promise<void> {
    if (!this.#mayClaim()) return;
    const run = { token: randomUUID(), startMs: leaseClockMs(), isProbe: true };
    const claim = { token: run.token, leaseMs: this.#leaseMs, limit: PROBES_AT_ONCE };
    const { deliveries, orphans } = await claimProbes(this.#tools.database, claim);
    const begun = deliveries.map((delivery) => ({
      claim: delivery,
      attempt: this.#begin(delivery.endpointId),
    }));
    await this.#attemptAll(begun, run);
    await this.#drop(orphans, run.token);
  }

  #mayClaim(): boolean {
    return !this.#stopping && this.#tools.gate.isOpen() && this.#tools.workflows.isReady();
  }

  /** The same for what follows deliveries that end: their slots are about to get free. */
  #followerClaims(): DirectClaims | null {
    return this.#claims((endpointId) => this.#mayTake(endpointId));
  }

  #claims(mayTake: (endpointId: string) => boolean): DirectClaims | null {
    if (this.#running === null || this.#full || !this.#mayClaim()) return null;
    return makeDirectClaims({
      leaseMs: this.#leaseMs,
      mayTake,
      begin: (endpointId) => this.#begin(endpointId),
      cancel: (attempt) => this.#end(attempt),
      carry: (begun, token, startMs) => this.#attemptAll(begun, { token, startMs, isProbe: false }),
    });
  }

  async #claimLoop(): Promise<void> {
    while (!this.#stopping) {
      this.#woken = false;
      try {
        const mayClaim = this.#mayClaim();
        if (mayClaim) await this.#claim();
        this.#failingFromMs = null;
        this.#turnedAtMs = performance.now();
        if (!mayClaim || this.#full || !this.#due.isWalking()) await this.#pause();
      } catch (error) {
        this.#turnedAtMs = performance.now();
        this.#failingFromMs ??= this.#turnedAtMs;
        this.#tools.onTrouble(error);
        await sleep(BACK_OFF_MS);
      }
    }
  }

  /** Claims once, as many as there are free slots. */
  async #claim(): Promise<void> {
    const limit = this.#slots.free();
    this.#full = limit <= 0;
    if (this.#full) return;
    const shares = await this.#due.find(limit);
    if (shares.length === 0) return;
    const startMs = leaseClockMs();
    const token = randomUUID();
    const options = { shares, limit, token, leaseMs: this.#leaseMs };
    const { deliveries, orphans, taken } = await claimDue(this.#tools.database, options);
    this.#due.took(shares, taken, limit);
    this.#full = taken.length >= limit;
    const begun = deliveries.map((claim) => ({ claim, attempt: this.#begin(claim.endpointId) }));
    await this.#attemptAll(begun, { token, startMs, isProbe: false });
    await this.#drop(orphans, token);
  }

  async #drop(orphans: readonly Orphan[], token: string): Promise<void> {
    if (orphans.length === 0) return;
    const claims = orphans.map(({ deliveryId }) => ({ deliveryId, token }));
    await dropOrphans(this.#tools.database, claims).catch(this.#tools.onTrouble);
  }

  /** Only endpoints that are known here; the others are found due. */
  #mayTake(endpointId: string): boolean {
    const isFree = this.#tools.limiter.free(endpointId) > 0;
    return isFree && this.#endpoints.has(endpointId) && !this.#due.isWaiting(endpointId);
  }

  #begin(endpointId: string): UnderWay {
    this.#counts.claimed += 1;
    const attempt = this.#tools.limiter.start(endpointId);
    this.#slots.take(attempt);
    return attempt;
  }

  /** The end of a claim that was not attempted. */
  #end(attempt: UnderWay): void {
    this.#counts.claimed -= 1;
    this.#slots.release(attempt);
    this.#tools.limiter.end(attempt, null);
  }

  /** Starts the attempts; does not wait for them. */
  async #attemptAll(begun: readonly Begun[], run: ClaimRun): Promise<void> {
    try {
      await this.#endpoints.load(
        new Map(begun.map(({ claim }) => [claim.endpointId, claim.endpointVersion])),
      );
    } catch (error) {
      this.#tools.onTrouble(error);
    }
    for (const one of begun) void this.#attempt(one, run);
  }

  async #attempt({ claim, attempt }: Begun, { token, startMs, isProbe }: ClaimRun): Promise<void> {
    const endpoint = this.#endpoints.get(claim.endpointId, claim.endpointVersion);
    // An endpoint that is gone or unreadable keeps the claim until its lease ends: nothing may spin.
    if (endpoint === undefined) return this.#end(attempt);
    noteClaim(claim, endpoint, startMs);
    const deadlineMs = startMs + endpoint.timeoutMs;
    const isInTimeStill = () => isInTime(deadlineMs, endpoint.timeoutMs) && this.#tools.gate.isOpen();
    if (!isInTimeStill()) return await this.#release({ claim, attempt }, token, null);
    const { workflows } = this.#tools;
    const send = () => this.#send(endpoint, claim, deadlineMs - leaseClockMs());
    // The POST leaves before anything is done for the workflow, unless it has to wait for it.
    const sending = workflows.mode === 'always' ? null : send();
    const label = labelOf(claim, endpoint);
    const carried = workflows.carry(label, deliveryWorkflowId(label), claim.attempts === 0);
    if (sending === null && !((await carried?.joined) && isInTimeStill())) {
      return await this.#release({ claim, attempt }, token, carried);
    }
    const sent = await (sending ?? send());
    if (sent === null) {
      carried?.end(LOOK_AGAIN);
      return this.#end(attempt);
    }
    this.#tools.limiter.end(attempt, sent.result);
    this.#slots.responded(attempt);
    const workflowId = carried?.hasWorkflow() ? carried.workflowId : this.#shownBy;
    const made = { ...claim, token, endpoint, isProbe, sent, workflowId };
    this.#made.set(made, { underWay: attempt, carried });
    this.#recorder.add(made);
  }

  /** Null for what cannot be sent at all, a defect: its claim comes back with its lease, and its slot at once. */
  async #send(endpoint: SendableEndpoint, claim: ClaimedDelivery, timeLeftMs: number) {
    try {
      return await sendDelivery(this.#tools.sender, endpoint, claim, timeLeftMs);
    } catch (error) {
      this.#tools.onTrouble(error);
      return null;
    }
  }

  /** Releases a claim that was not attempted: to its workflow where that was started, otherwise to be claimed anew. */
  async #release({ claim, attempt }: Begun, token: string, carried: CarriedAttempt | null): Promise<void> {
    const { database, onTrouble } = this.#tools;
    try {
      if (carried?.hasWorkflow()) await leaveToWorkflow(database, token, claim.deliveryId);
      else await releaseClaims(database, token, [claim.deliveryId]);
    } catch (error) {
      onTrouble(error);
    }
    carried?.end(LOOK_AGAIN);
    this.#end(attempt);
  }

  #onRecorded({ outcomes, promoted }: Recorded): void {
    const needWorkflows: DeliveryLabel[] = [];
    for (const { attempt, outcome } of outcomes) {
      const { underWay, carried } = this.#made.get(attempt) ?? { underWay: null, carried: null };
      if (underWay !== null) this.#slots.release(underWay);
      if (outcome === null) this.#counts.lost += 1;
      else if (outcome.state === 'delivered') this.#counts.delivered += 1;
      else this.#counts.failing += 1;
      carried?.end(outcome ?? LOOK_AGAIN);
      if (outcome?.state !== 'retrying' || !outcome.byWorkflow) continue;
      if (carried?.hasWorkflow()) void this.#retryUnlessStarted(carried, attempt.deliveryId);
      else needWorkflows.push(labelOf(attempt, attempt.endpoint));
    }
    if (needWorkflows.length > 0) void this.#startWorkflows(needWorkflows);
    const roomier = outcomes.some(({ attempt }) => this.#due.isWaiting(attempt.endpoint.id));
    if (promoted > 0 || this.#full || roomier) this.wake();
  }

  async #retryUnlessStarted({ started }: CarriedAttempt, deliveryId: string): Promise<void> {
    if (await started) return;
    await retryInLoop(this.#tools.database, [deliveryId]).catch(this.#tools.onTrouble);
  }

  /** What gets no workflow now is retried by a loop. */
  async #startWorkflows(labels: readonly DeliveryLabel[]): Promise<void> {
    const { database, workflows, onTrouble } = this.#tools;
    try {
      const { started, failed } = await workflows.startAll(labels);
      await recordWorkflow(database, started);
      await retryInLoop(
        database,
        failed.map(({ deliveryId }) => deliveryId),
      );
    } catch (error) {
      onTrouble(error);
    }
  }

  async #pause(): Promise<void> {
    if (this.#woken) return;
    const isBusy = this.#slots.taken() > 0 || this.#due.isHolding();
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, isBusy ? BUSY_POLL_MS : IDLE_POLL_MS);
      this.#interrupt = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#interrupt = null;
  }
}

/** For traces: from the claim to the attempt. */
function noteClaim(claim: ClaimedDelivery, { id, wabaId }: SendableEndpoint, startMs: number): void {
  tracing.note?.({
    name: 'claim',
    about: [{ wabaId, type: claim.eventType, eventId: claim.eventId, uuid: claim.eventUuid }],
    startMs: Date.now() - (leaseClockMs() - startMs),
    endMs: Date.now(),
    attributes: { endpoint_id: id, delivery: publicDeliveryId(claim.deliveryId), replay: claim.replay },
  });
}

type ClaimRun = { token: string; startMs: number; isProbe: boolean };

/** For a workflow whose attempt was not made or not recorded: its own activity asks the queue. */
const LOOK_AGAIN = { state: 'waiting', reason: 'the attempt was not made', delayMs: 1_000 } as const;

function labelOf(
  {
    deliveryId,
    deliveryDay,
    eventType,
    eventId,
  }: Pick<ClaimedDelivery, 'deliveryId' | 'deliveryDay' | 'eventType' | 'eventId'>,
  { id: endpointId, url: endpointUrl, wabaId, tenantId }: SendableEndpoint,
): DeliveryLabel {
  return { deliveryId, deliveryDay, endpointId, endpointUrl, wabaId, tenantId, eventType, eventId };
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
