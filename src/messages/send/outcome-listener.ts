import pg from 'pg';
import { HEARTBEAT, watchConnection } from '../../platform/postgres/connection-watch.ts';
import { connectionOf, cutConnection, type DatabaseOptions } from '../../platform/postgres/database.ts';

const RECONNECT_MS = 1_000;

export type OutcomeListener = {
  /** Calls `wake` when the outcome of this message is announced, or after a gap in the connection. */
  onOutcome(messageId: string, wake: () => void): () => void;
  close(): Promise<void>;
};

/**
 * Listens to announced outcomes of sends over a connection of its own, made when it is first needed. A lost connection
 * is made anew; what it missed is covered by whoever waits, who looks for himself now and then.
 */
export function listenToOutcomes(options: Pick<DatabaseOptions, 'url'>): OutcomeListener {
  const waiting = new Map<string, Set<() => void>>();
  let client: pg.Client | null = null;
  let closing = false;
  let timer: NodeJS.Timeout | null = null;

  const lost = (which: pg.Client) => {
    if (client !== which) return;
    client = null;
    if (!closing) timer = setTimeout(() => waiting.size > 0 && connect(), RECONNECT_MS);
  };
  const connect = () => {
    if (client !== null || closing) return;
    if (timer !== null) clearTimeout(timer);
    const fresh = new pg.Client({
      ...connectionOf({ ...options, applicationName: 'heliograph-outcomes' }),
      query_timeout: HEARTBEAT.answerMs,
    });
    client = fresh;
    watchConnection(fresh, () => void cutConnection(fresh));
    fresh.on('error', () => lost(fresh));
    fresh.on('end', () => lost(fresh));
    fresh.on('notification', ({ payload }) => {
      for (const wake of waiting.get(payload ?? '') ?? []) wake();
    });
    fresh
      .connect()
      .then(() => fresh.query('listen heliograph_sends'))
      .then(() => {
        for (const wakes of waiting.values()) for (const wake of wakes) wake();
      })
      .catch(() => {
        void cutConnection(fresh);
        lost(fresh);
      });
  };
  return {
    onOutcome: (messageId, wake) => {
      const wakes = waiting.get(messageId) ?? new Set();
      waiting.set(messageId, wakes.add(wake));
      connect();
      return () => {
        wakes.delete(wake);
        if (wakes.size === 0) waiting.delete(messageId);
      };
    },
    close: async () => {
      closing = true;
      if (timer !== null) clearTimeout(timer);
      await client?.end().catch(() => undefined);
    },
  };
}
