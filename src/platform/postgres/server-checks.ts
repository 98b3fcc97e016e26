import { connectionOf, type DatabaseOptions, direct, isPooled } from './connection.ts';
import type { Database } from './database.ts';
import { DatabaseClient } from './primary.ts';
import { queryColumn, queryValue } from './sql.ts';

/** By how many milliseconds the database's clock is ahead of this process's, at the least; negative: behind. */
export async function readClockSkewMs(database: Database): Promise<number> {
  const startMs = Date.now();
  const reading = 'select cast(extract(epoch from clock_timestamp()) * 1000 as double precision)';
  const ms = (await queryValue<number>(database, reading)) ?? startMs;
  // This clock counts whole milliseconds, the database's their parts, too.
  const endMs = Date.now() + 1;
  return ms > endMs ? ms - endMs : Math.min(0, ms - startMs);
}

/** Settings of the server without which a crash can lose or damage what was committed. */
const NEEDED = ['fsync', 'full_page_writes'];

export async function settingsThatLose(database: Database): Promise<string[]> {
  const reading = `select name from pg_settings where name = any (:needed::text[]) and setting = 'off' order by name`;
  return await queryColumn(database, reading, { needed: NEEDED });
}

/** Logs a warning when the server would not keep what it commits; silent while it is away. */
export async function warnWhenNotDurable(
  database: Database,
  logger: { warn(details: object, message: string): void },
): Promise<void> {
  try {
    const settings = await settingsThatLose(database);
    if (settings.length === 0) return;
    logger.warn(
      { settings },
      'PostgreSQL runs without these settings: a crash of its host can lose acknowledged messages',
    );
  } catch {
    // The statements that need the database report it.
  }
}

/** The database cannot be used in the way that the settings say. */
export class DatabaseRefusedError extends Error {
  override readonly name = 'DatabaseRefusedError';
}

const OLDEST_VERSION = 16;

/** A start does not wait for a database that is away. */
const CHECK_MS = 2_000;

/**
 * Throws DatabaseRefusedError when the server is too old, or is a pooler that does not keep what a session is set to:
 * LISTEN and the locks of migrations would fail without a word. Silent while the database is away.
 */
export async function refuseDatabase(options: Pick<DatabaseOptions, 'url' | 'directUrl'>): Promise<void> {
  const config = connectionOf({ ...direct(options), applicationName: 'heliograph-start' });
  const client = new DatabaseClient({
    ...config,
    connectionTimeoutMillis: CHECK_MS,
    query_timeout: CHECK_MS,
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query(
      `select current_setting('lock_timeout') as lock_timeout,
              current_setting('server_version_num')::integer / 10000 as version`,
    );
    if (rows[0]?.lock_timeout !== '10s') throw poolerError(options);
    if (rows[0]?.version < OLDEST_VERSION)
      throw new DatabaseRefusedError(
        `PostgreSQL ${rows[0]?.version} is too old: ${OLDEST_VERSION} or newer is needed`,
      );
  } catch (error) {
    if (error instanceof DatabaseRefusedError) throw error;
    if (isPoolerAnswer(error)) throw poolerError(options);
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** Whether a connection was refused because poolers take no sessions with settings. */
export function isPoolerAnswer(error: unknown): boolean {
  return error instanceof Error && /unsupported startup parameter/.test(error.message);
}

export function poolerError(options: Pick<DatabaseOptions, 'directUrl'>): DatabaseRefusedError {
  return new DatabaseRefusedError(
    isPooled(options)
      ? 'HELIOGRAPH_DATABASE_DIRECT_URL leads to a connection pooler: set it to the PostgreSQL server itself'
      : 'HELIOGRAPH_DATABASE_URL leads to a connection pooler, which keeps no session: set HELIOGRAPH_DATABASE_DIRECT_URL to the PostgreSQL server itself as well',
  );
}
