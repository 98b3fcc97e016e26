import pg from 'pg';
import type { Logger } from './logger.ts';

const RECONNECT_MS = 1_000;

export type DatabaseListener = { close(): Promise<void> };

/**
 * Listens on Postgres channels over a connection of its own and calls the handler of a channel per notification.
 * Reconnects for ever; notifications missed meanwhile are covered by the loops' polls.
 */
export function listenToDatabase(
  url: string,
  handlers: Readonly<Record<string, () => void>>,
  logger: Logger,
): DatabaseListener {
  let closing = false;
  let client: pg.Client | null = null;
  let timer: NodeJS.Timeout | null = null;

  const reconnect = () => {
    if (!closing && timer === null) timer = setTimeout(connect, RECONNECT_MS);
  };
  const connect = async () => {
    timer = null;
    const fresh = new pg.Client({
      connectionString: url,
      application_name: 'heliograph-listener',
      keepAlive: true,
      connectionTimeoutMillis: 5_000,
    });
    fresh.on('error', (error) => logger.debug({ err: error }, 'database listener lost its connection'));
    fresh.on('end', () => {
      if (client === fresh) client = null;
      reconnect();
    });
    fresh.on('notification', ({ channel }) => handlers[channel]?.());
    try {
      await fresh.connect();
      for (const channel of Object.keys(handlers))
        await fresh.query(`listen ${pg.escapeIdentifier(channel)}`);
      client = fresh;
      for (const handle of Object.values(handlers)) handle();
    } catch {
      await fresh.end().catch(() => {});
      reconnect();
    }
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
