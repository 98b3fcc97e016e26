import type { Database } from './database.ts';
import { query } from './sql.ts';

/** Settings of the server without which a crash can lose or damage what was committed. */
const NEEDED = ['fsync', 'full_page_writes'];

/** Logs a warning when the server would not keep what it commits; silent while it is away. */
export async function warnWhenNotDurable(
  database: Database,
  logger: { warn(details: object, message: string): void },
): Promise<void> {
  try {
    const off = await query<{ name: string }>(
      database,
      `select name from pg_settings where name = any (?::text[]) and setting = 'off' order by name`,
      [NEEDED],
    );
    if (off.length === 0) return;
    const settings = off.map(({ name }) => name);
    logger.warn(
      { settings },
      'PostgreSQL runs without these settings: a crash of its host can lose acknowledged messages',
    );
  } catch {
    // Whoever needs the database says so.
  }
}
