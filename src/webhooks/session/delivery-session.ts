import { randomUUID } from 'node:crypto';
import { dropOrphans } from '../../database/delivery-settlement.ts';
import type { FreeSlots } from '../../database/due-pick.ts';
import { type ClaimedDelivery, claimDue, type Orphan, releaseClaims } from '../../database/session-claims.ts';
import { type AttemptTools, isInTime, leaseMsFor } from '../delivery-attempt.ts';
import { sendDelivery } from '../send-delivery.ts';
import type { SendableEndpoint } from '../sendable-endpoint.ts';
import { type DirectClaims, makeDirectClaims } from './direct-claims.ts';
import { type EndpointBook, makeEndpointBook } from './endpoint-book.ts';
import { makeResultRecorder, type Recorded, type ResultRecorder } from './result-recorder.ts';

/** Attempts of one process side by side; they mostly wait for the network. */
const SLOTS = 512;

/** A session that found nothing to do for this long ends; shorter lulls do not bring the slower way back. */
const IDLE_MS = 1_000;

/** Beside the wake-ups: rate limits and leases end by themselves. */
const POLL_MS = 50;
const BACK_OFF_MS = 500;

export type SessionCounts = { claimed: number; delivered: number; failing: number; lost: number };

/** The workflow on whose behalf the session claims; over when `ended` says so. */
export type SessionSeat = { workflowId: string; ended: () => boolean };

export type SessionTools = AttemptTools & {
  /** Something failed for the moment; the session goes on. */
  onTrouble: (error: unknown) => void;
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
  readonly #counts: SessionCounts = { claimed: 0, delivered: 0, failing: 0, lost: 0 };
  #seat: SessionSeat | null = null;
  #inFlight = 0;
  /** Endpoints whose share did not suffice at the last claim: new deliveries must not overtake what may still wait. */
  #crowded = new Set<string>();
  /** The same for all slots together. */
  #full = false;
  #lastEndpointId = '0';
  #woken = false;
  #interrupt: (() => void) | null = null;

  constructor(tools: SessionTools) {
    this.#tools = tools;
    this.#leaseMs = leaseMsFor(tools.defaults.timeoutMs);
    this.#book = makeEndpointBook({ ...tools, onUnreadable: (_id, error) => tools.onTrouble(error) });
    this.#recorder = makeResultRecorder(tools, {
      giveUpMs: this.#leaseMs,
      followerClaims: () => this.#followerClaims(),
      onUnrecordable: tools.onTrouble,
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
    return this.#inFlight;
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
    while (this.#inFlight > 0) await sleep(20);
  }

  /** Lets a publisher of this process claim for the session what it inserts; null while there is none or it is busy. */
  directClaims(): DirectClaims | null {
    return this.#claims((endpointId) => this.#inFlight < SLOTS && this.#mayTake(endpointId));
  }

  /** The same for what follows deliveries that end: their slots are about to get free. */
  #followerClaims(): DirectClaims | null {
    return this.#claims((endpointId) => this.#mayTake(endpointId));
  }

  #claims(mayTake: (endpointId: string) => boolean): DirectClaims | null {
    const seat = this.#seat;
    if (seat === null || seat.ended() || this.#full) return null;
    return makeDirectClaims({
      leaseMs: this.#leaseMs,
      mayTake,
      begin: (endpointId) => this.#begin(endpointId),
      cancel: (endpointId) => this.#end(endpointId),
      carry: (claims, token, startMs) => this.#attemptAll(claims, { token, startMs, ...seat }),
    });
  }

  async #claimLoop(seat: SessionSeat): Promise<'idle' | 'ended'> {
    let busyMs = performance.now();
    let claimedBefore = this.#counts.claimed;
    while (!seat.ended()) {
      this.#woken = false;
      try {
        await this.#claim(seat);
        // Also what publishers claimed for the session is work.
        if (this.#counts.claimed > claimedBefore || this.#inFlight > 0) busyMs = performance.now();
        claimedBefore = this.#counts.claimed;
        if (performance.now() - busyMs > IDLE_MS) return 'idle';
        await this.#pause();
      } catch (error) {
        this.#tools.onTrouble(error);
        await sleep(BACK_OFF_MS);
      }
    }
    return 'ended';
  }

  /** Claims once, as many as there are free slots. */
  async #claim({ workflowId }: SessionSeat): Promise<void> {
    const limit = SLOTS - this.#inFlight;
    this.#full = limit <= 0;
    if (this.#full) return;
    const startMs = performance.now();
    const token = randomUUID();
    const slots = this.#tools.limiter.slots(SLOTS);
    const options = { slots, afterEndpointId: this.#lastEndpointId, limit, token, leaseMs: this.#leaseMs };
    const { deliveries: claims, orphans } = await claimDue(this.#tools.database, options);
    this.#full = claims.length === limit;
    this.#crowded = crowdedOf(slots, claims);
    this.#lastEndpointId = this.#full ? (claims.at(-1)?.endpointId ?? '0') : '0';
    for (const claim of claims) this.#begin(claim.endpointId);
    await this.#attemptAll(claims, { token, startMs, workflowId });
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
    return isFree && this.#book.has(endpointId) && !this.#crowded.has(endpointId);
  }

  #begin(endpointId: string): void {
    this.#inFlight += 1;
    this.#counts.claimed += 1;
    this.#tools.limiter.start(endpointId);
  }

  /** The end of a claim that was not attempted. */
  #end(endpointId: string): void {
    this.#inFlight -= 1;
    this.#counts.claimed -= 1;
    this.#tools.limiter.end(endpointId, null);
  }

  /** Starts the attempts; does not wait for them. */
  async #attemptAll(claims: readonly ClaimedDelivery[], run: ClaimRun): Promise<void> {
    try {
      await this.#book.load(new Map(claims.map((claim) => [claim.endpointId, claim.endpointVersion])));
    } catch (error) {
      this.#tools.onTrouble(error);
    }
    for (const claim of claims) void this.#attempt(claim, run);
  }

  async #attempt(claim: ClaimedDelivery, { token, startMs, workflowId }: ClaimRun): Promise<void> {
    const { limiter } = this.#tools;
    const { endpointId } = claim;
    const endpoint = this.#book.get(endpointId, claim.endpointVersion);
    const deadlineMs = startMs + (endpoint?.timeoutMs ?? 0);
    if (endpoint === undefined || !isInTime(deadlineMs, endpoint.timeoutMs)) {
      // An endpoint that is gone or unreadable keeps the claim until its lease ends: nothing may spin.
      if (endpoint !== undefined) await this.#release(claim, token);
      this.#end(endpointId);
      return;
    }
    const sent = await this.#send(endpoint, claim, deadlineMs - performance.now());
    if (sent === null) return this.#end(endpointId);
    limiter.end(endpointId, sent.result);
    this.#recorder.add({ ...claim, token, endpoint, isProbe: false, sent, workflowId });
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
    this.#inFlight -= outcomes.length;
    const failingBefore = this.#counts.failing;
    for (const { outcome } of outcomes) {
      if (outcome === null) this.#counts.lost += 1;
      else if (outcome.state === 'delivered') this.#counts.delivered += 1;
      else this.#counts.failing += 1;
    }
    if (this.#counts.failing > failingBefore) this.#tools.onRetries();
    const roomier = outcomes.some(({ attempt }) => this.#crowded.has(attempt.endpoint.id));
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

/** Endpoints that got as many as they may have at once, so that more may be due. */
function crowdedOf(
  { endpointIds, free, otherwise }: FreeSlots,
  claims: readonly ClaimedDelivery[],
): Set<string> {
  const shares = new Map(endpointIds.map((id, index) => [id, free[index] ?? 0]));
  const counts = new Map<string, number>();
  for (const { endpointId } of claims) counts.set(endpointId, (counts.get(endpointId) ?? 0) + 1);
  const crowded = new Set(
    [...counts].filter(([id, n]) => n >= (shares.get(id) ?? otherwise)).map(([id]) => id),
  );
  for (const [id, share] of shares) if (share === 0) crowded.add(id);
  return crowded;
}

type ClaimRun = { token: string; startMs: number; workflowId: string };

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
