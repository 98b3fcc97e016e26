import pg from 'pg';

/** What processes tell each other of; each is only a hint that something may be found sooner than by the next poll. */
export type Channel =
  | 'heliograph_inbox'
  | 'heliograph_deliveries'
  | 'heliograph_workflow_tasks'
  | 'heliograph_sends';

export type Notifier = {
  /** Told soon, together with what else is to be told by then; the same thing once. Never fails. */
  notify(channel: Channel, payload: string): void;
  /** Once everything is told. */
  close(): Promise<void>;
};

/**
 * Notifies over a connection of its own. PostgreSQL lets one notifying transaction of a cluster commit at a time, and
 * holds that lock over the flush: so nothing that has to be durable notifies while it commits.
 */
export function openNotifier(connection: () => pg.ClientConfig): Notifier {
  let pool: pg.Pool | null = null;
  let waiting = new Map<string, [Channel, string]>();
  let running: Promise<void> | null = null;

  const run = async () => {
    while (waiting.size > 0) {
      const told = [...waiting.values()];
      waiting = new Map();
      pool ??= openPool(connection());
      const values = [told.map(([channel]) => channel), told.map(([, payload]) => payload)];
      // What is lost is found by polls.
      await pool.query({ name: 'notify', text: NOTIFY, values }).catch(() => undefined);
    }
    running = null;
  };
  return {
    notify(channel, payload) {
      waiting.set(`${channel} ${payload}`, [channel, payload]);
      running ??= run();
    },
    async close() {
      await running;
      await pool?.end();
    },
  };
}

const NOTIFY =
  'select pg_notify(channel, payload) from unnest($1::text[], $2::text[]) as told (channel, payload)';

/** More would be of no use any more. */
const ANSWER_MS = 3_000;

function openPool(config: pg.ClientConfig): pg.Pool {
  const pool = new pg.Pool({
    ...config,
    max: 1,
    min: 1,
    connectionTimeoutMillis: ANSWER_MS,
    query_timeout: ANSWER_MS,
    idleTimeoutMillis: 60_000,
  });
  pool.on('error', () => {});
  return pool;
}
