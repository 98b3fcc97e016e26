import type pg from 'pg';

/** How often a connection that mostly listens is asked for a sign of life, and how long that may take. */
export const HEARTBEAT = { everyMs: 10_000, answerMs: 5_000 };

/**
 * Asks a listening connection for a sign of life until it ends: when a firewall forgot it, or the server's host is gone,
 * nothing would ever tell. `onSilent` gets the moment (`performance.now()`) of the question that was not answered.
 * The client's `query_timeout` says how long an answer may take.
 */
export function watchConnection(
  client: pg.Client,
  onSilent: (askedAtMs: number) => void,
  everyMs = HEARTBEAT.everyMs,
): void {
  const ask = async () => {
    const askedAtMs = performance.now();
    try {
      await client.query('select 1');
      timer.refresh();
    } catch {
      onSilent(askedAtMs);
    }
  };
  const timer = setTimeout(() => void ask(), everyMs).unref();
  client.once('end', () => clearTimeout(timer));
}
