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
