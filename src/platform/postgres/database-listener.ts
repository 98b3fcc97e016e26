import pg from 'pg';
import type { Logger } from '../logger.ts';
import { HEARTBEAT, watchConnection } from './connection-watch.ts';
import { connectionOf, cutConnection } from './database.ts';

const RECONNECT_MS = 1_000;

export type DatabaseListener = { close(): Promise<void> };

export type ListenerOptions = {
  url: string;
  /** Called per notification of the channel with what it says, and after a gap in the connection with nothing. */
  handlers: Readonly<Record<string, (payload: string) => void>>;
  logger: Logger;
  /**
   * A connection was silent since this moment (`performance.now()`) while a new one answers: others that are as old
   * are likely as dead.
   */
  onSilence: (sinceMs: number) => void;
  heartbeat?: { everyMs: number; answerMs: number };
};

/**
 * Listens on Postgres channels over a connection of its own. Reconnects for ever; notifications missed meanwhile are
 * covered by the loops' polls.
 */
export function listenToDatabase(options: ListenerOptions): DatabaseListener {
  const { url, handlers, logger, onSilence, heartbeat = HEARTBEAT } = options;
  let closing = false;
  let client: pg.Client | null = null;
  let timer: NodeJS.Timeout | null = null;
  let silentSinceMs: number | null = null;

  const reconnect = () => {
    if (!closing && timer === null) timer = setTimeout(connect, RECONNECT_MS);
  };
  const connect = async () => {
    timer = null;
    const fresh = new pg.Client({
      ...connectionOf({ url, applicationName: 'heliograph-listener' }),
      connectionTimeoutMillis: heartbeat.answerMs,
      query_timeout: heartbeat.answerMs,
    });
    fresh.on('error', (error) => logger.debug({ err: error }, 'database listener lost its connection'));
    fresh.on('end', () => {
      if (client === fresh) client = null;
      reconnect();
    });
    fresh.on('notification', ({ channel, payload }) => handlers[channel]?.(payload ?? ''));
    try {
      await fresh.connect();
      for (const channel of Object.keys(handlers))
        await fresh.query(`listen ${pg.escapeIdentifier(channel)}`);
    } catch {
      void cutConnection(fresh);
      reconnect();
      return;
    }
    client = fresh;
    if (silentSinceMs !== null) onSilence(silentSinceMs);
    silentSinceMs = null;
    watchConnection(
      fresh,
      (askedAtMs) => {
        silentSinceMs ??= askedAtMs;
        logger.warn('the database does not answer its listener: connecting anew');
        void cutConnection(fresh);
      },
      heartbeat.everyMs,
    );
    for (const handle of Object.values(handlers)) handle('');
  };
  void connect();
  return {
    close: async () => {
      closing = true;
      if (timer !== null) clearTimeout(timer);
      await client?.end().catch(() => {});
    },
  };
}
