import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { isCanceled } from '../../platform/postgres/error-class.ts';
import { query, queryValue } from '../../platform/postgres/sql.ts';
import { RateLimitError, RequestError } from '../../platform/request-input.ts';

/** A count that a user waits for, with all its statements. */
export const COUNT_TIMEOUT_MS = 3_000;

/** The count of a replay that starts: it is over before the request is given up, which would not stop it. */
export const START_TIMEOUT_MS = 10_000;

/**
 * What a tenant selects may be all that it has: one count at a time over all processes, so that a tenant has one connection for it. `count`
 * calls `beforeStatement` before each of its statements, so that all of them together take `timeoutMs` at most; with null, the connection's
 * own limit counts for each. Throws RequestError `replay_too_large` when it takes too long, and RateLimitError when another count is under
 * way.
 */
export async function countInTurn<T>(
  database: Database,
  { tenantId, timeoutMs }: { tenantId: string; timeoutMs: number | null },
  count: (trx: Transaction, beforeStatement: () => Promise<void>) => Promise<T>,
): Promise<T> {
  const endMs = timeoutMs === null ? null : performance.now() + timeoutMs;
  try {
    return await database.transaction(async (trx) => {
      if (!(await takeTurn(trx, tenantId))) throw otherCount();
      return await count(trx, async () => await limitStatement(trx, endMs));
    });
  } catch (error) {
    throw timeoutMs !== null && isCanceled(error) ? tooSlow(timeoutMs) : error;
  }
}

/** Statements share the time: each may take what those before it have left. */
async function limitStatement(trx: Transaction, endMs: number | null): Promise<void> {
  if (endMs === null) return;
  const leftMs = Math.max(1, Math.ceil(endMs - performance.now()));
  await query(trx, `select set_config('statement_timeout', :leftMs, true)`, { leftMs: String(leftMs) });
}

async function takeTurn(trx: Transaction, tenantId: string): Promise<boolean> {
  const isFree = await queryValue<boolean>(
    trx,
    `select pg_try_advisory_xact_lock(hashtextextended('replay count ' || cast(:tenantId as text), 0))`,
    { tenantId },
  );
  return isFree === true;
}

function otherCount(): RateLimitError {
  const message = 'Another selection of the business is being counted; try again in a few seconds.';
  return new RateLimitError(message, COUNT_TIMEOUT_MS);
}

function tooSlow(timeoutMs: number): RequestError {
  const message = `This selection cannot be counted within ${timeoutMs / 1_000} seconds; narrow the selection down, for example by time.`;
  return new RequestError('replay_too_large', message);
}
