/** Where the time of one attempt went, in ms. Null is a phase that was not reached or, on a reused connection, not needed. */
export type PhaseTimings = {
  dnsMs: number | null;
  connectMs: number | null;
  tlsMs: number | null;
  /** From handing the request to a ready connection to the first byte of the response. */
  firstByteMs: number | null;
  /** From the call to the outcome: waiting for a connection, all phases and the body. */
  totalMs: number;
  reused: boolean;
};

/** What is known of one connection; its phases fill up while it is made. */
export type ConnectionPhases = {
  dnsMs: number | null;
  connectMs: number | null;
  tlsMs: number | null;
  remoteAddress: string | null;
  /** Requests that were written to it. */
  requests: number;
};

/** A connection of which nothing is known yet. */
export function newConnectionPhases(): ConnectionPhases {
  return { dnsMs: null, connectMs: null, tlsMs: null, remoteAddress: null, requests: 0 };
}

/** Ms on the monotonic clock since `startMs` (performance.now()), to a tenth. */
export function elapsedMs(startMs: number): number {
  return Math.round((performance.now() - startMs) * 10) / 10;
}
