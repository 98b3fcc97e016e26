import { randomUUID } from 'node:crypto';
import { leaseClockMs } from './attempt/lease-clock.ts';
import type { UnderWay } from './loop/endpoint-limiter.ts';
import type { ClaimedDelivery } from './queue/claim.ts';
import type { DirectClaimer } from './queue/enqueue.ts';

/** Claims that a publisher makes for a session of its own process, in the transaction that queues the deliveries. */
export type DirectClaims = DirectClaimer & {
  /** After the commit: the session attempts what was claimed. */
  carry(claims: readonly ClaimedDelivery[]): void;
  /** After a rollback: nothing was claimed. */
  cancel(): void;
};

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
 * inserted; those that did not become heads give theirs back.
 */
export function makeDirectClaims(session: SessionSide): DirectClaims {
  const token = randomUUID();
  const startMs = leaseClockMs();
  const taken: UnderWay[] = [];
  const giveBack = () => {
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
      giveBack();
      void session.carry(begun, token, startMs);
    },
    cancel: giveBack,
  };
}

function takeOut(taken: UnderWay[], endpointId: string): UnderWay | undefined {
  const index = taken.findIndex((attempt) => attempt.endpointId === endpointId);
  return index < 0 ? undefined : taken.splice(index, 1)[0];
}
