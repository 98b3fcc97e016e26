import type { Logger } from '../../platform/logger.ts';
import { type Loop, startLoop } from '../../platform/loop.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { execute, queryValue } from '../../platform/postgres/sql.ts';
import { readSystemFigures, type SystemFigures } from './system-figures.ts';

const REST_MS = 30_000;

/** The figures must not become what the database is busy with. */
const STATEMENT_TIMEOUT_MS = 10_000;

/** Older figures would pass for fresh ones. */
const MAX_AGE_SECONDS = 120;

/**
 * Reads the system figures every 30 s, in one process of all, and stores them for the scrapes of all: they cost a step per
 * endpoint and per backlog, which must not grow with the number of workers and scrapers.
 */
export function startFiguresKeeper(tools: {
  database: Database;
  logger: Logger;
  isLeader: () => boolean;
}): Loop {
  const { database, logger, isLeader } = tools;
  let nextMs = Number.NEGATIVE_INFINITY;
  return startLoop({
    name: 'figures-keeper',
    logger,
    isLeader,
    turn: async () => {
      if (performance.now() < nextMs) return false;
      const { figures, slow } = await readSystemFigures(database, STATEMENT_TIMEOUT_MS);
      await storeFigures(database, figures);
      nextMs = performance.now() + REST_MS;
      if (slow.length > 0)
        throw new Error(`these figures took longer than ${STATEMENT_TIMEOUT_MS} ms: ${slow.join(', ')}`);
      return false;
    },
  });
}

export async function storeFigures(database: Database, figures: Partial<SystemFigures>): Promise<void> {
  await execute(
    database,
    `insert into system_figures (figures, read_at) values (cast(:figures as jsonb), clock_timestamp())
     on conflict (only_row) do update set figures = excluded.figures, read_at = excluded.read_at`,
    { figures: JSON.stringify(figures) },
  );
}

/** The stored figures, perhaps those of a worker of another version; null when they are absent or older than two minutes. */
export async function readStoredFigures(database: Database): Promise<Partial<SystemFigures> | null> {
  return await queryValue<Partial<SystemFigures>>(
    database,
    `select figures from system_figures
      where read_at > (select clock_timestamp()) - cast(:maxAgeSeconds as integer) * interval '1 second'`,
    { maxAgeSeconds: MAX_AGE_SECONDS },
  );
}
