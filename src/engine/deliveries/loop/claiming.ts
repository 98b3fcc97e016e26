import { randomUUID } from 'node:crypto';
import { leaseClockMs } from '../../../platform/lease-clock.ts';
import { makeLowWater } from '../../../platform/low-water.ts';
import { tracing } from '../../../platform/metrics/metrics.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { publicDeliveryId } from '../../../platform/public-ids.ts';
import {
  type ClaimedDelivery,
  type DueEndpoint,
  type DueShare,
  findDueEndpoints,
  findLatelyDue,
  lastPosition,
  type TakenPlace,
} from '../../queue/claim.ts';
import type { DirectClaims } from '../../queue/enqueue.ts';
import type { SendableEndpoint } from '../attempt/send-delivery.ts';
import type { EndpointLimiter, UnderWay } from './attempt-limits.ts';

/** Endpoints per statement of a walk. */
const PAGE = 512;

/** How far behind the last position a look at the new end begins: transactions end in another order than they draw. */
const SPARE_POSITIONS = 2_000;

/** An endpoint without room is looked at again after this long, whatever it waits for: its limits may change. */
const LONGEST_SLEEP_MS = 10_000;

/** The place that a walk must have seen moves on no more often than this. */
const NOTED_FOR_MS = 1_000;

type RunHolds = {
  free(): number;
  /** Whether attempts of this endpoint wait for their runs. */
  areNeeded(endpointId: string): boolean;
};

const NO_HOLDS: RunHolds = { free: () => 0, areNeeded: () => false };

/**
 * Finds endpoints with something due by walking over them in the database, and keeps those that have more than they may
 * get at once, in turn. So each claim names the endpoints that it takes from, and costs the same however many have
 * limits or something due. What walks cost bounds how often they are made.
 */
export class DueFinder {
  readonly #limiter: EndpointLimiter;
  readonly #holds: RunHolds;
  readonly #walks: ReturnType<typeof makeWalks>;
  readonly #known = new Map<string, DueEndpoint>();
  /** Of them, those that may have room, in the order of their turns: an endpoint that gets something goes to the end. */
  readonly #turns = new Set<string>();
  /** Until which tick the others sleep: asking the limits of each at each claim would take longer than the claim. */
  readonly #asleep = new Map<string, number>();
  #tick = 0;

  constructor(tools: { database: Database; limiter: EndpointLimiter; holds?: RunHolds }) {
    const { database, limiter, holds = NO_HOLDS } = tools;
    [this.#limiter, this.#holds] = [limiter, holds];
    this.#walks = makeWalks(database);
  }

  /** Endpoints with something due and a free slot, in turn, `most` of them at most, with what each may have. */
  async find(most: number): Promise<DueShare[]> {
    if (!this.#walks.areDue()) {
      this.#learn(await this.#walks.lately(), false);
      return this.#eligible(most);
    }
    let found = this.#eligible(most).length;
    do {
      const page = await this.#walks.next();
      this.#learn(page, true);
      found += page.filter(
        ({ endpointId }) => this.#turns.has(endpointId) && this.#shareOf(endpointId) > 0,
      ).length;
    } while (this.#walks.isWalking() && found < most);
    return this.#eligible(most);
  }

  /** The part of `shares` that was taken, of which at most `limit` was asked for. */
  took(shares: readonly DueShare[], taken: readonly TakenPlace[], limit: number): void {
    const counts = Map.groupBy(taken, ({ endpointId }) => endpointId);
    for (const { endpointId, share } of shares) {
      const places = counts.get(endpointId) ?? [];
      const endpoint = this.#known.get(endpointId);
      const last = places.reduce(laterOf, places[0]);
      if (endpoint === undefined || (last === undefined && taken.length >= limit)) continue;
      this.#forget(endpointId);
      if (last === undefined || (places.length < share && taken.length < limit)) continue;
      this.#know({ ...endpoint, ...behind(last) });
    }
  }

  /** Whether more of an endpoint may be due than it could have. */
  isWaiting(endpointId: string): boolean {
    return this.#known.has(endpointId);
  }

  /** Whether something that is due waits for room at its endpoint. */
  isHolding(): boolean {
    return this.#known.size > 0;
  }

  /** Whether there are endpoints that were not looked at yet. */
  isWalking(): boolean {
    return this.#walks.isWalking();
  }

  #learn(found: readonly DueEndpoint[], fromStart: boolean): void {
    for (const endpoint of found) {
      const { endpointId } = endpoint;
      this.#limiter.allow(endpointId, endpoint);
      // New deliveries come before the replays that were left over, not before other first attempts.
      const isNext = fromStart || this.#known.get(endpointId)?.replay !== false;
      if (!endpoint.isOpen) this.#forget(endpointId);
      else if (isNext) this.#know(endpoint);
    }
  }

  #know(endpoint: DueEndpoint): void {
    this.#known.set(endpoint.endpointId, endpoint);
    if (!this.#asleep.has(endpoint.endpointId)) this.#turns.add(endpoint.endpointId);
  }

  #forget(endpointId: string): void {
    this.#known.delete(endpointId);
    this.#turns.delete(endpointId);
  }

  #shareOf(endpointId: string): number {
    return Math.min(this.#limiter.free(endpointId), MOST_AT_ONCE);
  }

  #eligible(most: number): DueShare[] {
    this.#wake();
    const shares: DueShare[] = [];
    let holds = this.#holds.free();
    for (const endpointId of this.#turns) {
      if (shares.length >= most) break;
      const endpoint = this.#known.get(endpointId);
      const isHeld = this.#holds.areNeeded(endpointId);
      // Half of what is left, so that a flood of one endpoint leaves holds to the next.
      const share = Math.min(this.#shareOf(endpointId), isHeld ? Math.ceil(holds / 2) : MOST_AT_ONCE);
      if (endpoint !== undefined && share > 0) {
        const { replay, position } = endpoint;
        shares.push({ endpointId, replay, position, share });
        if (isHeld) holds -= share;
      } else this.#sendToSleep(endpointId);
    }
    return shares;
  }

  #sendToSleep(endpointId: string): void {
    const waitMs = Math.min(this.#limiter.waitMs(endpointId), LONGEST_SLEEP_MS);
    if (waitMs <= 0) return;
    this.#turns.delete(endpointId);
    this.#asleep.set(endpointId, Math.ceil((performance.now() + waitMs) / TICK_MS));
  }

  #wake(): void {
    const tick = Math.floor(performance.now() / TICK_MS);
    if (tick === this.#tick) return;
    this.#tick = tick;
    for (const [endpointId, untilTick] of this.#asleep) {
      if (untilTick > tick) continue;
      this.#asleep.delete(endpointId);
      if (this.#known.has(endpointId)) this.#turns.add(endpointId);
    }
  }
}

/** So exact is a wake-up; claims are that far apart while something waits for room. */
const TICK_MS = 50;

/** More than any endpoint may have under way in one process. */
const MOST_AT_ONCE = 10_000;

/** A walk may take a tenth of the time, and is never further away than this. */
const WALK_REST = { times: 10, longestMs: 10_000 };

/** Walks over all endpoints with something due, page by page, and looks at what became due lately in between. */
function makeWalks(database: Database) {
  const positionsFrom = makeLowWater({ rest: WALK_REST });
  let afterEndpointId: string | null = null;
  let end = 0;
  let notedMs = Number.NEGATIVE_INFINITY;
  let walkedMs = 0;
  const noteEnd = async () => {
    if (performance.now() - notedMs < NOTED_FOR_MS) return;
    notedMs = performance.now();
    end = Math.max(0, Number(await lastPosition(database)) - SPARE_POSITIONS);
  };
  return {
    areDue: () => afterEndpointId !== null || positionsFrom.from() === null,
    isWalking: () => afterEndpointId !== null,
    lately: () => findLatelyDue(database, String(positionsFrom.from() ?? 0)),
    /** The next page of a walk, or the first of a new one. */
    async next(): Promise<DueEndpoint[]> {
      if (afterEndpointId === null) {
        await noteEnd();
        walkedMs = 0;
      }
      const startMs = performance.now();
      const page = { afterEndpointId: afterEndpointId ?? '0', limit: PAGE };
      const found = await findDueEndpoints(database, page);
      walkedMs += performance.now() - startMs;
      afterEndpointId = found.length < PAGE ? null : (found.at(-1)?.endpointId ?? null);
      if (afterEndpointId === null) positionsFrom.looked({ tookMs: walkedMs, seen: { end, oldest: null } });
      return found;
    },
  };
}

const laterOf = (a: TakenPlace | undefined, b: TakenPlace): TakenPlace =>
  a !== undefined && compare(a, b) >= 0 ? a : b;

function compare(a: TakenPlace, b: TakenPlace): number {
  return Number(a.replay) - Number(b.replay) || Number(BigInt(a.position) - BigInt(b.position));
}

function behind({ replay, position }: TakenPlace) {
  return { replay, position: String(BigInt(position) + 1n) };
}

export type Begun = { claim: ClaimedDelivery; attempt: UnderWay };

type LoopSide = {
  leaseMs: number;
  mayTake: (endpointId: string) => boolean;
  begin: (endpointId: string) => UnderWay;
  cancel: (attempt: UnderWay) => void;
  attempt: (claims: readonly Begun[], run: ClaimRun) => Promise<void>;
  onFollowers: () => void;
};

/** The values that all deliveries of one claim have; `startMs` is on the clock of leases. */
export type ClaimRun = { token: string; startMs: number; isProbe: boolean };

export function newClaim(isProbe = false): ClaimRun {
  return { token: randomUUID(), startMs: leaseClockMs(), isProbe };
}

/**
 * Saves a delivery the way over the queue: a claim, its commit and a read. A slot is taken per delivery before it is
 * inserted; those that did not become heads release theirs.
 */
export function makeDirectClaims({
  leaseMs,
  mayTake,
  begin,
  cancel,
  attempt,
  onFollowers,
}: LoopSide): DirectClaims {
  const run = newClaim();
  const taken: UnderWay[] = [];
  const release = () => {
    for (const underWay of taken.splice(0)) cancel(underWay);
  };
  return {
    token: run.token,
    leaseMs,
    take(endpointId) {
      const mayBegin = mayTake(endpointId);
      if (mayBegin) taken.push(begin(endpointId));
      return mayBegin;
    },
    carry(claims) {
      const begun = claims.map((claim) => ({
        claim,
        attempt: takeOut(taken, claim.endpointId) ?? begin(claim.endpointId),
      }));
      release();
      void attempt(begun, run);
    },
    cancel: release,
    onFollowers,
  };
}

function takeOut(taken: UnderWay[], endpointId: string): UnderWay | undefined {
  const index = taken.findIndex((attempt) => attempt.endpointId === endpointId);
  return index < 0 ? undefined : taken.splice(index, 1)[0];
}

/** For traces: from the claim to the attempt. */
export function noteClaim(claim: ClaimedDelivery, { id, wabaId }: SendableEndpoint, startMs: number): void {
  tracing.note?.({
    name: 'claim',
    about: [{ wabaId, type: claim.eventType, eventId: claim.eventId, uuid: claim.eventUuid }],
    startMs: Date.now() - (leaseClockMs() - startMs),
    endMs: Date.now(),
    attributes: { endpoint_id: id, delivery: publicDeliveryId(claim.deliveryId), replay: claim.replay },
  });
}
