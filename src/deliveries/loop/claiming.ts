import { randomUUID } from 'node:crypto';
import { makeFullLooks } from '../../platform/loop.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { leaseClockMs } from '../attempt/attempt-delivery.ts';
import {
  type ClaimedDelivery,
  type DueEndpoint,
  type DueShare,
  findDueEndpoints,
  findLatelyDue,
  lastPosition,
  type TakenPlace,
} from '../queue/claim.ts';
import type { DirectClaims } from '../queue/enqueue.ts';
import type { EndpointLimiter, UnderWay } from './attempt-limits.ts';

/** Endpoints per statement of a walk. */
const PAGE = 512;

/** How far behind the last position a look at the new end begins: transactions end in another order than they draw. */
const SPARE_POSITIONS = 2_000;

/** What a walk must have seen moves on no more often than this. */
const NOTED_FOR_MS = 1_000;

/**
 * Finds endpoints with something due by walking over them in the database, and keeps those that have more than they may
 * get at once, in turn. So each claim names the endpoints that it takes from, and costs the same however many have
 * limits or something due. What walks cost bounds how often they are made.
 */
export class DueFinder {
  readonly #limiter: EndpointLimiter;
  readonly #walks: ReturnType<typeof makeWalks>;
  /** In the order of their turns: an endpoint that gets something goes to the end. */
  readonly #known = new Map<string, DueEndpoint>();

  constructor({ database, limiter }: { database: Database; limiter: EndpointLimiter }) {
    this.#limiter = limiter;
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
      found += page.filter((endpoint) => endpoint.isOpen && this.#shareOf(endpoint) > 0).length;
    } while (this.#walks.isWalking() && found < most);
    return this.#eligible(most);
  }

  /** What was taken of `shares`, of which at most `limit` was asked for. */
  took(shares: readonly DueShare[], taken: readonly TakenPlace[], limit: number): void {
    const counts = Map.groupBy(taken, ({ endpointId }) => endpointId);
    for (const { endpointId, share } of shares) {
      const places = counts.get(endpointId) ?? [];
      const endpoint = this.#known.get(endpointId);
      const last = places.reduce(laterOf, places[0]);
      if (endpoint === undefined || (last === undefined && taken.length >= limit)) continue;
      this.#known.delete(endpointId);
      if (last === undefined || (places.length < share && taken.length < limit)) continue;
      this.#known.set(endpointId, { ...endpoint, ...behind(last) });
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
      const { endpointId, maxInFlight, ratePerSecond } = endpoint;
      this.#limiter.allow(new Map([[endpointId, { maxInFlight, ratePerSecond }]]));
      // What is new comes before the replays that were left over, not before other first attempts.
      const isNext = fromStart || this.#known.get(endpointId)?.replay !== false;
      if (!endpoint.isOpen) this.#known.delete(endpointId);
      else if (isNext) this.#known.set(endpointId, endpoint);
    }
  }

  #shareOf({ endpointId }: DueEndpoint): number {
    return Math.min(this.#limiter.free(endpointId), MOST_AT_ONCE);
  }

  #eligible(most: number): DueShare[] {
    const shares: DueShare[] = [];
    for (const endpoint of this.#known.values()) {
      if (shares.length >= most) break;
      const { endpointId, replay, position } = endpoint;
      const share = this.#shareOf(endpoint);
      if (share > 0) shares.push({ endpointId, replay, position, share });
    }
    return shares;
  }
}

/** More than any endpoint may have under way in one process. */
const MOST_AT_ONCE = 10_000;

/** Walks over all endpoints with something due, page by page, and looks at what became due lately in between. */
function makeWalks(database: Database) {
  const looks = makeFullLooks();
  let afterEndpointId: string | null = null;
  let latelyAfter = '0';
  let notedMs = Number.NEGATIVE_INFINITY;
  let walkedMs = 0;
  const noteEnd = async () => {
    if (performance.now() - notedMs < NOTED_FOR_MS) return;
    notedMs = performance.now();
    latelyAfter = String(Math.max(0, Number(await lastPosition(database)) - SPARE_POSITIONS));
  };
  const end = () => {
    afterEndpointId = null;
    looks.took(walkedMs);
  };
  return {
    areDue: () => afterEndpointId !== null || looks.isDue(),
    isWalking: () => afterEndpointId !== null,
    end,
    lately: () => findLatelyDue(database, latelyAfter),
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
      afterEndpointId = found.at(-1)?.endpointId ?? null;
      if (found.length < PAGE) end();
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

/** A claim, and its place among what is under way. */
export type Begun = { claim: ClaimedDelivery; attempt: UnderWay };

type SessionSide = {
  leaseMs: number;
  mayTake: (endpointId: string) => boolean;
  begin: (endpointId: string) => UnderWay;
  cancel: (attempt: UnderWay) => void;
  carry: (claims: readonly Begun[], token: string, startMs: number) => Promise<void>;
};

/**
 * Saves a delivery the way over the queue: a claim, its commit and a read. A slot is taken per delivery before it is
 * inserted; those that did not become heads release theirs.
 */
export function makeDirectClaims(session: SessionSide): DirectClaims {
  const token = randomUUID();
  const startMs = leaseClockMs();
  const taken: UnderWay[] = [];
  const release = () => {
    for (const attempt of taken.splice(0)) session.cancel(attempt);
  };
  return {
    token,
    leaseMs: session.leaseMs,
    take(endpointId) {
      if (!session.mayTake(endpointId)) return false;
      taken.push(session.begin(endpointId));
      return true;
    },
    carry(claims) {
      const begun = claims.map((claim) => ({
        claim,
        attempt: takeOut(taken, claim.endpointId) ?? session.begin(claim.endpointId),
      }));
      release();
      void session.carry(begun, token, startMs);
    },
    cancel: release,
  };
}

function takeOut(taken: UnderWay[], endpointId: string): UnderWay | undefined {
  const index = taken.findIndex((attempt) => attempt.endpointId === endpointId);
  return index < 0 ? undefined : taken.splice(index, 1)[0];
}
