/** What workflows leave behind for this long is work for a session, which may have more under way per endpoint. */
const BACKLOG_MS = 2_000;

export type BacklogWatch = {
  /** Whether something that could be sent was due at every look of the last seconds. Asked once per turn. */
  isBehind(): Promise<boolean>;
  /** A session takes over, or the allowance is what is short. */
  reset(): void;
};

/**
 * Notices that workflows fall behind though more of them could be started: the endpoint's share of them is too small,
 * because its answers take long or because it just came back. What its rate limit holds back is not counted: a session
 * could not send that either.
 */
export function makeBacklogWatch(hasDue: () => Promise<boolean>): BacklogWatch {
  let sinceMs: number | null = null;
  return {
    async isBehind() {
      if (!(await hasDue())) sinceMs = null;
      else sinceMs ??= performance.now();
      return sinceMs !== null && performance.now() - sinceMs > BACKLOG_MS;
    },
    reset() {
      sinceMs = null;
    },
  };
}
