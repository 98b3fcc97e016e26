/** Of a worker process. It usually recovers a connection within seconds. */
export const PROCESS_LIMITS = {
  /** A turn of a loop is several statements at most, each of which ends after 35 s. */
  turnMs: 180_000,
  listenerDownMs: 30_000,
  unpolledMs: 60_000,
  /** After so long in such a state, a new process would do better. */
  restartMs: 300_000,
} as const;

/** Each is a request to upstream. */
export const MOST_ASKED_WABAS = 25;

/** By then an API key or a certificate needs a new one. */
export const EXPIRES_SOON_DAYS = 14;
