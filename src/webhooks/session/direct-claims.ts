import { randomUUID } from 'node:crypto';
import type { DirectClaimer } from '../../database/delivery-queue.ts';
import type { ClaimedDelivery } from '../../database/session-claims.ts';

/** Claims that a publisher makes for a session of its own process, in the transaction that queues the deliveries. */
export type DirectClaims = DirectClaimer & {
  /** After the commit: the session attempts what was claimed. */
  carry(claims: readonly ClaimedDelivery[]): void;
  /** After a rollback: nothing was claimed. */
  cancel(): void;
};

type SessionSide = {
  leaseMs: number;
  mayTake: (endpointId: string) => boolean;
  begin: (endpointId: string) => void;
  cancel: (endpointId: string) => void;
  carry: (claims: readonly ClaimedDelivery[], token: string, startMs: number) => Promise<void>;
};

/**
 * Saves a delivery the way over the queue: a claim, its commit and a read. A slot is taken per delivery before it is
 * inserted; those that did not become heads give theirs back.
 */
export function makeDirectClaims(session: SessionSide): DirectClaims {
  const token = randomUUID();
  const startMs = performance.now();
  const taken: string[] = [];
  const giveBack = () => {
    for (const endpointId of taken.splice(0)) session.cancel(endpointId);
  };
  return {
    token,
    leaseMs: session.leaseMs,
    take(endpointId) {
      if (!session.mayTake(endpointId)) return false;
      session.begin(endpointId);
      taken.push(endpointId);
      return true;
    },
    carry(claims) {
      for (const { endpointId } of claims) taken.splice(taken.indexOf(endpointId), 1);
      giveBack();
      void session.carry(claims, token, startMs);
    },
    cancel: giveBack,
  };
}
