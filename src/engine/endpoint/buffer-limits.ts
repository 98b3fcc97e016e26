/** The most that an endpoint may have of buffering. */
export const BUFFER_LIMITS = { seconds: 60, maxSeconds: 300, messages: 100, bytes: 256 * 1_024 };

export const BUFFER_DEFAULTS = { maxSecondsFactor: 4, messages: 20 };
