import { setImmediate as othersTurn, setTimeout as sleep } from 'node:timers/promises';
import type { SecretBox } from '../../../platform/crypto/secret-box.ts';
import { isInTime, leaseClockMs, leaseMsFor } from '../../../platform/lease-clock.ts';
import type { Logger } from '../../../platform/logger.ts';
import { type Loop, type LoopStatus, startLoop, type WorkWatch } from '../../../platform/loop.ts';
import { IDLE_POLL_MS, LOOPS } from '../../../platform/loops.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { type HttpSender, isProxyFailure } from '../../../platform/sender/http-sender.ts';
import {
  type ClaimedDelivery,
  claimDue,
  claimProbes,
  deliveryWorkflowId,
  HAS_DUE,
  releaseClaims,
} from '../../queue/claim.ts';
import { claimOne } from '../../queue/claim-one.ts';
import type { DirectClaims } from '../../queue/enqueue.ts';
import { dropOrphan } from '../../queue/remove.ts';
import { type EndpointCache, makeEndpointCache } from '../attempt/endpoint-cache.ts';
import { type MadeAttempt, newRecording } from '../attempt/made-attempt.ts';
import { type DeliveryDefaults, trySend } from '../attempt/send-delivery.ts';
import type { SettlementTools } from '../attempt/settle-attempts.ts';
import type { AttemptOutcome } from '../judge-outcome.ts';
import { AT_LIMIT, LOOK_AGAIN, NOT_CLAIMING, waitOf } from '../run-news.ts';
import { type EndpointLimiter, makeSlots, type UnderWay } from './attempt-limits.ts';
import { makeAttemptTally } from './attempt-tally.ts';
import { type Begun, type ClaimRun, DueFinder, makeDirectClaims, newClaim, noteClaim } from './claiming.ts';
import { type AttemptRun, type DeliveryRuns, labelOf, workflowModeOf } from './delivery-runs.ts';
import { type Recorded, ResultRecorder } from './result-recorder.ts';

/** Beside the wake-ups: rate limits and leases end by themselves. */
const BUSY_POLL_MS = 50;

const PROBES_AT_ONCE = 20;

/** Every commit that makes something due wakes every worker, and one of them is enough. */
const REST_AFTER_NOTHING_MS = 5;

/** An endpoint whose secret does not open waits for an operator, who restores a key or sets a new secret. */
const UNREADABLE_REST_MS = 60_000;

/** To begin an attempt takes this thread 0.2 ms. After so many, what others have sent meanwhile has its turn. */
const BEGUN_AT_ONCE = 16;

export type LoopCounts = { claimed: number; delivered: number; failing: number; lost: number };

export type LoopTools = SettlementTools & {
  logger: Logger;
  sender: HttpSender;
  limiter: EndpointLimiter;
  secretBox: SecretBox;
  defaults: DeliveryDefaults;
  runs: DeliveryRuns;
};

/** The loop holds a slot for an attempt until it is recorded, and notifies its run then. */
type LoopAttempt = MadeAttempt & { slot: UnderWay; run: AttemptRun | null };

export type DeliveryRef = { deliveryId: string; deliveryDay: string };

/**
 * Delivers: claims what is due as slots get free, attempts side by side, records in groups. It runs as long as its
 * process and needs nothing but PostgreSQL; runs in Temporal show what it does. The activity of such a run comes here too,
 * so an attempt is made in one way only.
 */
export class DeliveryLoop {
  readonly #tools: LoopTools;
  readonly #leaseMs: number;
  readonly #endpoints: EndpointCache;
  readonly #recorder: ResultRecorder<LoopAttempt>;
  /** Attempts by endpoint, for the workflow that shows the loop. */
  readonly tally = makeAttemptTally();
  readonly #slots = makeSlots();
  readonly #due: DueFinder;
  readonly #counts: LoopCounts = { claimed: 0, delivered: 0, failing: 0, lost: 0 };
  #loop: Loop | null = null;
  #stopping = false;
  #shownBy: string | null = null;
  /** All slots did not suffice at the last claim: new deliveries must not overtake what may still wait. */
  #full = false;

  constructor(tools: LoopTools) {
    this.#tools = tools;
    this.#leaseMs = leaseMsFor(tools.defaults.timeoutMs);
    const areNeeded = (endpointId: string) => this.#waitsForRun(endpointId);
    this.#due = new DueFinder({ ...tools, holds: { free: () => this.#slots.holds.free(), areNeeded } });
    this.#endpoints = makeEndpointCache({
      ...tools,
      onUnreadable: (endpointId, error) => {
        tools.limiter.rest(endpointId, UNREADABLE_REST_MS);
        tools.onTrouble(error);
      },
    });
    this.#recorder = new ResultRecorder(tools, {
      giveUpMs: this.#leaseMs,
      // The next of each lane whose delivery ends: their slots are about to get free.
      followerClaims: () => this.#claims((endpointId) => this.#mayTake(endpointId)),
      isSlotWanted: ({ endpoint: { id } }) =>
        this.#full || this.#due.isWaiting(id) || this.#tools.limiter.free(id) <= 0,
      onRecorded: (recorded) => this.#onRecorded(recorded),
      onHeld: (attempts) => this.#onHeld(attempts),
    });
  }

  /** `standsAside`: whether looks for something due are left to another process, until a notification or a free slot asks for one. */
  start(watch?: WorkWatch, standsAside = () => false): void {
    this.#loop ??= startLoop({
      name: 'delivery-loop',
      pollMs: () => (this.#isBusy() ? BUSY_POLL_MS : LOOPS['delivery-loop'].pollMs),
      standsAside: () => !this.#isBusy() && standsAside(),
      work: {
        watch,
        hasWork: HAS_DUE,
        idlePollMs: () => (this.#full || this.#due.isHolding() ? BUSY_POLL_MS : IDLE_POLL_MS),
      },
      logger: this.#tools.logger,
      turn: () => this.#turn(),
    });
  }

  #isBusy(): boolean {
    return this.inFlight() > 0 || this.#due.isHolding();
  }

  /** Claims nothing more; what is under way goes on. */
  stopClaiming(): void {
    this.#stopping = true;
    void this.#loop?.stop();
  }

  /** Resolves when nothing is claimed any more, no attempt is under way, and all are recorded. */
  async drained(): Promise<void> {
    this.stopClaiming();
    await this.#loop?.stop();
    while (this.inFlight() > 0) await sleep(20);
  }

  /** Attempts name this workflow as theirs, unless they have their own; null: none shows the loop. */
  showIn(workflowId: string | null): void {
    this.#shownBy = workflowId;
  }

  isShown(): boolean {
    return this.#shownBy !== null;
  }

  /** Deliveries that are claimed, being sent or being recorded. */
  inFlight(): number {
    return this.#slots.all.unfinished();
  }

  /** Of the claims; attempts under way have their own time-outs. */
  status(): LoopStatus {
    return this.#loop?.status() ?? { turnMs: 0, sinceTurnMs: 0, failingMs: 0 };
  }

  counts(): LoopCounts {
    return { ...this.#counts };
  }

  /** Something may have become claimable. */
  wake(): void {
    this.#loop?.wake();
  }

  /**
   * Attempts one delivery for its run, or waits for the attempt that is under way here. Resolves once it is recorded, or
   * with the reason why nothing can be attempted now. Rejects when `database` fails: activities have their own pool.
   */
  async attemptOne(ref: DeliveryRef, database: Database = this.#tools.database): Promise<AttemptOutcome> {
    const { runs } = this.#tools;
    const underWay = runs.join(ref.deliveryId);
    if (underWay !== null) return await underWay;
    const reason = await this.#beginOne(ref, database, { hasRun: true });
    return reason ?? (await (runs.join(ref.deliveryId) ?? LOOK_AGAIN));
  }

  /** Attempts a delivery whose run has not come for it, if it may be attempted now; does not wait for the attempt. */
  async attemptLate(ref: DeliveryRef): Promise<void> {
    await this.#beginOne(ref, this.#tools.database, {});
  }

  /** Null: the attempt is under way. */
  async #beginOne(
    ref: DeliveryRef,
    database: Database,
    known: { hasRun?: true },
  ): Promise<AttemptOutcome | null> {
    if (!this.#mayClaim()) return NOT_CLAIMING;
    const run = newClaim();
    const one = await claimOne(database, { ...ref, token: run.token, leaseMs: this.#leaseMs });
    if (one.kind === 'settled') return { state: 'settled', end: one.end };
    if (one.kind === 'waiting') return waitOf(one.waiting);
    const { delivery } = one;
    if (this.#tools.limiter.free(delivery.endpointId) <= 0) {
      await releaseClaims(database, run.token, [delivery.deliveryId]);
      return AT_LIMIT;
    }
    await this.#attemptAll(this.#beginAll([{ ...delivery, ...known }]), run);
    return null;
  }

  /** Lets a publisher of this process claim what it inserts; null while nothing can be attempted at once. */
  directClaims(): DirectClaims | null {
    return this.#claims((endpointId) => this.#slots.all.free() > 0 && this.#mayTake(endpointId));
  }

  /** Attempts one delivery at each of some endpoints whose probe is due; returns whether there may be more of them. */
  async probe(): Promise<boolean> {
    const limit = Math.min(PROBES_AT_ONCE, this.#slots.all.free(), this.#slots.probes.free());
    if (limit <= 0 || !this.#mayClaim()) return false;
    const run = newClaim(true);
    const options = { token: run.token, leaseMs: this.#leaseMs, limit };
    const claims = await claimProbes(this.#tools.database, options);
    const begun = this.#beginAll(claims);
    for (const { attempt } of begun) this.#slots.probes.take(attempt);
    await this.#attemptAll(begun, run);
    return claims.length === limit;
  }

  #mayClaim(): boolean {
    return !this.#stopping && this.#tools.gate.isOpen();
  }

  #claims(mayTake: (endpointId: string) => boolean): DirectClaims | null {
    if (this.#loop === null || this.#full || !this.#mayClaim()) return null;
    return makeDirectClaims({
      leaseMs: this.#leaseMs,
      mayTake,
      begin: (endpointId) => this.#begin(endpointId),
      cancel: (attempt) => this.#end(attempt),
      attempt: (begun, run) => this.#attemptAll(begun, run),
      onFollowers: () => this.#recorder.hurry(),
    });
  }

  /** Returns whether endpoints are left that were not looked at. */
  async #turn(): Promise<boolean> {
    if (!this.#mayClaim()) return false;
    const hasFound = await this.#claim();
    if (!hasFound) await sleep(REST_AFTER_NOTHING_MS);
    return !this.#full && this.#due.isWalking();
  }

  /** Claims once, as many as there are free slots. False: there was room, and nothing to claim. */
  async #claim(): Promise<boolean> {
    const limit = this.#slots.all.free();
    this.#full = limit <= 0;
    if (this.#full) {
      this.#recorder.hurry();
      return true;
    }
    const shares = await this.#due.find(limit);
    if (shares.length === 0) return false;
    const run = newClaim();
    const options = { shares, limit, token: run.token, leaseMs: this.#leaseMs };
    const claims = await claimDue(this.#tools.database, options);
    this.#due.took(shares, claims, limit);
    this.#full = claims.length >= limit;
    await this.#attemptAll(this.#beginAll(claims), run);
    return claims.length > 0;
  }

  /** Only endpoints that are known here; the others are found due. */
  #mayTake(endpointId: string): boolean {
    const isFree = this.#tools.limiter.free(endpointId) > 0;
    if (this.#slots.holds.free() <= 0 && this.#waitsForRun(endpointId)) return false;
    return isFree && this.#endpoints.has(endpointId) && !this.#due.isWaiting(endpointId);
  }

  #waitsForRun(endpointId: string): boolean {
    const { defaults, limiter, runs } = this.#tools;
    const mode = limiter.workflowsOf(endpointId) ?? defaults.workflows;
    return mode === 'always' && runs.mayStart();
  }

  #beginAll(claims: readonly ClaimedDelivery[]): Begun[] {
    return claims.map((claim) => ({ claim, attempt: this.#begin(claim.endpointId) }));
  }

  #begin(endpointId: string): UnderWay {
    this.#counts.claimed += 1;
    const attempt = this.#tools.limiter.start(endpointId);
    this.#slots.all.take(attempt);
    if (this.#waitsForRun(endpointId)) this.#slots.holds.take(attempt);
    return attempt;
  }

  #free(attempt: UnderWay): void {
    for (const slots of Object.values(this.#slots)) slots.release(attempt);
    this.#tools.limiter.release(attempt);
  }

  /** Their endpoints have the room that they take, and not the others. */
  #onHeld(attempts: readonly LoopAttempt[]): void {
    for (const { slot } of attempts) {
      this.#tools.limiter.hold(slot);
      for (const slots of Object.values(this.#slots)) slots.hold(slot);
    }
    if (this.#full && attempts.length > 0) this.wake();
  }

  /** The end of a claim that was not attempted. */
  #end(attempt: UnderWay): void {
    this.#counts.claimed -= 1;
    this.#free(attempt);
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
    for (const [n, one] of begun.entries()) {
      if (n > 0 && n % BEGUN_AT_ONCE === 0) await othersTurn();
      void this.#attempt(one, run);
    }
  }

  async #attempt({ claim, attempt }: Begun, { token, startMs, isProbe }: ClaimRun): Promise<void> {
    const { body } = claim;
    if (body === null) {
      await dropOrphan(this.#tools.database, { ...claim, token }).catch(this.#tools.onTrouble);
      return this.#end(attempt);
    }
    const endpoint = this.#endpoints.get(claim.endpointId, claim.endpointVersion);
    // An endpoint that is gone or unreadable keeps the claim until its lease ends: nothing may spin.
    if (endpoint === undefined) return this.#end(attempt);
    noteClaim(claim, endpoint, startMs);
    const deadlineMs = startMs + endpoint.timeoutMs;
    const label = labelOf(claim, endpoint);
    const run = this.#tools.runs.begin(label, {
      mode: workflowModeOf(endpoint, claim.eventType),
      isFirst: claim.attempts === 0,
      hasRun: claim.hasRun,
    });
    // An attempt that its run makes waits for that, which takes milliseconds.
    if (run?.isHeld === true) await run.held(deadlineMs - leaseClockMs());
    this.#slots.holds.release(attempt);
    const maySend = isInTime(deadlineMs, endpoint.timeoutMs) && this.#tools.gate.isOpen();
    if (!maySend) await this.#release(claim, token);
    const timeLeftMs = deadlineMs - leaseClockMs();
    const sent = maySend ? await trySend(this.#tools, endpoint, { ...claim, body }, timeLeftMs) : null;
    if (sent === null) {
      void this.#tools.runs.end(run, label, null);
      return this.#end(attempt);
    }
    // A proxy that fails says nothing about how fast the endpoint is.
    this.#tools.limiter.end(attempt, isProxyFailure(sent.result) ? null : sent.result);
    for (const slots of Object.values(this.#slots)) slots.responded(attempt);
    const hasRun = run?.hasRun === true;
    const workflowId = run?.isShown === true ? deliveryWorkflowId(label) : this.#shownBy;
    const isCalm = run !== null && this.#tools.runs.isCalm();
    const shown = { hasRun, isCalm, workflowId, recording: newRecording() };
    const slot = attempt;
    this.#recorder.add({ ...claim, token, endpoint, isProbe, slot, run, sent, ...shown });
  }

  async #release({ deliveryId }: ClaimedDelivery, token: string): Promise<void> {
    const { database, onTrouble } = this.#tools;
    await releaseClaims(database, token, [deliveryId]).catch(onTrouble);
  }

  #onRecorded({ outcomes, promoted }: Recorded<LoopAttempt>): void {
    for (const { attempt, outcome } of outcomes) {
      this.#free(attempt.slot);
      this.tally.note(attempt.endpoint.id);
      if (outcome === null) this.#counts.lost += 1;
      else if (outcome.state === 'delivered') this.#counts.delivered += 1;
      else this.#counts.failing += 1;
    }
    const roomier = outcomes.some(({ attempt }) => this.#due.isWaiting(attempt.endpoint.id));
    if (promoted > 0 || this.#full || roomier) this.wake();
    // Calls to Temporal take the time of this thread: the next claim goes out first.
    setImmediate(() => {
      for (const { attempt, outcome } of outcomes) {
        void this.#tools.runs.end(attempt.run, labelOf(attempt, attempt.endpoint), outcome);
      }
    });
  }
}
