import { randomUUID } from 'node:crypto';
import { type AttemptTools, isInTime, leaseMsFor } from '../attempt/attempt-delivery.ts';
import { leaseClockMs } from '../attempt/lease-clock.ts';
import { sendDelivery } from '../attempt/send-delivery.ts';
import type { SendableEndpoint } from '../attempt/sendable-endpoint.ts';
import type { MadeAttempt } from '../attempt/settle-attempts.ts';
import { type ClaimedDelivery, claimDue, type Orphan, releaseClaims } from '../queue/claim.ts';
import { dropOrphans } from '../queue/remove.ts';
import { type AttemptSlots, makeAttemptSlots } from './attempt-slots.ts';
import { type Begun, type DirectClaims, makeDirectClaims } from './direct-claims.ts';
import { type DueFinder, makeDueFinder } from './due-finder.ts';
import { type EndpointBook, makeEndpointBook } from './endpoint-cache.ts';
import type { UnderWay } from './endpoint-limiter.ts';
import { makeResultRecorder, type Recorded, type ResultRecorder } from './result-recorder.ts';

/** A session that found nothing to do for this long ends; shorter lulls do not bring the slower way back. */
const IDLE_MS = 1_000;

/** Beside the wake-ups: rate limits and leases end by themselves. */
const POLL_MS = 50;
const BACK_OFF_MS = 500;

export type SessionCounts = { claimed: number; delivered: number; failing: number; lost: number };

/** The workflow on whose behalf the session claims; over when `ended` says so. */
export type SessionSeat = { workflowId: string; ended: () => boolean };

export type SessionTools = AttemptTools & {
  /** Deliveries now need a workflow of their own. */
  onRetries: () => void;
};

/**
 * Carries deliveries without a workflow each: claims what is due as slots get free, attempts side by side, records in
 * groups. Attempts outlive the seat: when one ends, the next goes on claiming while the old ones finish.
 */
export class DeliverySession {
  readonly #tools: SessionTools;
  readonly #leaseMs: number;
  readonly #book: EndpointBook;
  readonly #recorder: ResultRecorder;
  readonly #slots: AttemptSlots = makeAttemptSlots();
  readonly #due: DueFinder;
  readonly #unrecorded = new WeakMap<MadeAttempt, UnderWay>();
  readonly #counts: SessionCounts = { claimed: 0, delivered: 0, failing: 0, lost: 0 };
  #seat: SessionSeat | null = null;
  /** All slots did not suffice at the last claim: new deliveries must not overtake what may still wait. */
  #full = false;
  #woken = false;
  #interrupt: (() => void) | null = null;

  constructor(tools: SessionTools) {
    this.#tools = tools;
    this.#leaseMs = leaseMsFor(tools.defaults.timeoutMs);
    this.#due = makeDueFinder(tools);
    this.#book = makeEndpointBook({ ...tools, onUnreadable: (_id, error) => tools.onTrouble(error) });
    this.#recorder = makeResultRecorder(tools, {
      giveUpMs: this.#leaseMs,
      followerClaims: () => this.#followerClaims(),
      onRecorded: (recorded) => this.#onRecorded(recorded),
      onOrphans: (orphans, token) => void this.#drop(orphans, token),
    });
  }

  /** Claims and attempts until there was nothing to do for a while (`idle`) or the seat's time is over (`ended`). */
  async run(seat: SessionSeat): Promise<'idle' | 'ended'> {
    this.#seat = seat;
    try {
      return await this.#claimLoop(seat);
    } finally {
      if (this.#seat === seat) this.#seat = null;
    }
  }

  isActive(): boolean {
    return this.#seat !== null;
  }

  /** Deliveries that are claimed, being sent or being recorded. */
  inFlight(): number {
    return this.#slots.taken();
  }

  counts(): SessionCounts {
    return { ...this.#counts };
  }

  /** Something may have become claimable, or the seat may have ended. */
  wake(): void {
    this.#woken = true;
    this.#interrupt?.();
  }

  /** Resolves when no attempt is under way any more and all are recorded. */
  async drained(): Promise<void> {
    while (this.#slots.taken() > 0) await sleep(20);
  }

  /** Lets a publisher of this process claim for the session what it inserts; null while there is none or it is busy. */
  directClaims(): DirectClaims | null {
    return this.#claims((endpointId) => this.#slots.free() > 0 && this.#mayTake(endpointId));
  }

  /** The same for what follows deliveries that end: their slots are about to get free. */
  #followerClaims(): DirectClaims | null {
    return this.#claims((endpointId) => this.#mayTake(endpointId));
  }

  #claims(mayTake: (endpointId: string) => boolean): DirectClaims | null {
    const seat = this.#seat;
    if (seat === null || seat.ended() || this.#full || !this.#tools.gate.isOpen()) return null;
    return makeDirectClaims({
      leaseMs: this.#leaseMs,
      mayTake,
      begin: (endpointId) => this.#begin(endpointId),
      cancel: (attempt) => this.#end(attempt),
      carry: (begun, token, startMs) => this.#attemptAll(begun, { token, startMs, ...seat }),
    });
  }

  async #claimLoop(seat: SessionSeat): Promise<'idle' | 'ended'> {
    let busyMs = performance.now();
    let claimedBefore = this.#counts.claimed;
    while (!seat.ended()) {
      this.#woken = false;
      try {
        const isOpen = this.#tools.gate.isOpen();
        if (isOpen) await this.#claim(seat);
        // Also what publishers claimed for the session is work.
        const isBusy = this.#counts.claimed > claimedBefore || this.#slots.taken() > 0;
        if (isBusy || !isOpen) busyMs = performance.now();
        claimedBefore = this.#counts.claimed;
        if (performance.now() - busyMs > IDLE_MS) return 'idle';
        if (!isOpen || this.#full || !this.#due.isWalking()) await this.#pause();
      } catch (error) {
        this.#tools.onTrouble(error);
        await sleep(BACK_OFF_MS);
      }
    }
    return 'ended';
  }

  /** Claims once, as many as there are free slots. */
  async #claim({ workflowId }: SessionSeat): Promise<void> {
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
    await this.#attemptAll(begun, { token, startMs, workflowId });
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
    return isFree && this.#book.has(endpointId) && !this.#due.isWaiting(endpointId);
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
    this.#slots.giveBack(attempt);
    this.#tools.limiter.end(attempt, null);
  }

  /** Starts the attempts; does not wait for them. */
  async #attemptAll(begun: readonly Begun[], run: ClaimRun): Promise<void> {
    try {
      await this.#book.load(new Map(begun.map(({ claim }) => [claim.endpointId, claim.endpointVersion])));
    } catch (error) {
      this.#tools.onTrouble(error);
    }
    for (const one of begun) void this.#attempt(one, run);
  }

  async #attempt({ claim, attempt }: Begun, { token, startMs, workflowId }: ClaimRun): Promise<void> {
    const endpoint = this.#book.get(claim.endpointId, claim.endpointVersion);
    const deadlineMs = startMs + (endpoint?.timeoutMs ?? 0);
    if (endpoint === undefined || !isInTime(deadlineMs, endpoint.timeoutMs) || !this.#tools.gate.isOpen()) {
      // An endpoint that is gone or unreadable keeps the claim until its lease ends: nothing may spin.
      if (endpoint !== undefined) await this.#release(claim, token);
      this.#end(attempt);
      return;
    }
    const sent = await this.#send(endpoint, claim, deadlineMs - leaseClockMs());
    if (sent === null) return this.#end(attempt);
    this.#tools.limiter.end(attempt, sent.result);
    this.#slots.answered(attempt);
    const made = { ...claim, token, endpoint, isProbe: false, sent, workflowId };
    this.#unrecorded.set(made, attempt);
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

  async #release(claim: ClaimedDelivery, token: string): Promise<void> {
    try {
      await releaseClaims(this.#tools.database, token, [claim.deliveryId]);
    } catch (error) {
      this.#tools.onTrouble(error);
    }
  }

  #onRecorded({ outcomes, promoted }: Recorded): void {
    const failingBefore = this.#counts.failing;
    for (const { attempt, outcome } of outcomes) {
      const underWay = this.#unrecorded.get(attempt);
      if (underWay !== undefined) this.#slots.giveBack(underWay);
      if (outcome === null) this.#counts.lost += 1;
      else if (outcome.state === 'delivered') this.#counts.delivered += 1;
      else this.#counts.failing += 1;
    }
    if (this.#counts.failing > failingBefore) this.#tools.onRetries();
    const roomier = outcomes.some(({ attempt }) => this.#due.isWaiting(attempt.endpoint.id));
    if (promoted > 0 || this.#full || roomier) this.wake();
  }

  async #pause(): Promise<void> {
    if (this.#woken) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, POLL_MS);
      this.#interrupt = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#interrupt = null;
  }
}

type ClaimRun = { token: string; startMs: number; workflowId: string };

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
