import type { SealedDatabase } from '../../platform/crypto/sealed-database.ts';
import { sealedSecret } from '../../platform/crypto/sealed-secret.ts';
import { SecretBoxError } from '../../platform/crypto/secret-box.ts';
import { GraphError, isTokenError } from '../../platform/graph/graph-error.ts';
import type { Logger } from '../../platform/logger.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { execute, query } from '../../platform/postgres/sql.ts';
import { findWaba } from './accounts.ts';
import { askForNumbers } from './followed-numbers.ts';

export const ACCESS_TOKEN = sealedSecret({ table: 'wabas', id: ['waba_id', 'text'], secret: 'access_token' });

const NO_TOKEN = 'There is no access token that can be used.';
const MAX_PROBLEM_CHARS = 300;

/** There is no access token to ask upstream with; an operator can change that. */
export class AccessTokenProblem extends Error {
  constructor(problem: string) {
    super(problem);
    this.name = 'AccessTokenProblem';
  }
}

/** The upstream access token of a WABA. Throws AccessTokenProblem, with what an operator has to do. */
export async function openAccessToken(tools: SealedDatabase, wabaId: string): Promise<string> {
  const sealed = (await findWaba(tools.database, wabaId))?.accessTokenSealed ?? null;
  if (sealed === null) {
    throw new AccessTokenProblem(
      `WABA ${wabaId} has no upstream access token. Set one with the admin command.`,
    );
  }
  try {
    return tools.secretBox.open(sealed, ACCESS_TOKEN.place(wabaId));
  } catch (error) {
    if (!(error instanceof SecretBoxError)) throw error;
    throw new AccessTokenProblem(
      `The upstream access token of WABA ${wabaId} cannot be decrypted (${error.code}). ` +
        'Put its key back into HELIOGRAPH_ENCRYPTION_KEYS or set the token anew.',
    );
  }
}

/** As `openAccessToken`; null where there is none that can be used. */
export async function usableToken(tools: SealedDatabase, wabaId: string): Promise<string | null> {
  return await openAccessToken(tools, wabaId).catch((error: unknown) => {
    if (error instanceof AccessTokenProblem) return null;
    throw error;
  });
}

/** What upstream says against the access token; null: the failure is about something else. */
export function tokenProblemOf(error: unknown): string | null {
  if (error instanceof AccessTokenProblem) return NO_TOKEN;
  return error instanceof GraphError && isTokenError(error) ? error.message : null;
}

/** Has the numbers looked up, which shows whether the refusal holds. While it is noted, nothing is written. */
export async function noteTokenRefused(database: Database, wabaId: string, problem: string): Promise<void> {
  await database.transaction(async (trx) => {
    const noted = await execute(
      trx,
      `update wabas set token_refused_at = now(), token_problem = :maxProblemChars
        where waba_id = :wabaId and token_refused_at is null and removed_at is null`,
      { maxProblemChars: problem.slice(0, MAX_PROBLEM_CHARS), wabaId },
    );
    if (noted > 0) await askForNumbers(trx, [wabaId]);
  });
}

/** Best effort: the next refusal, or the daily look at the numbers, tells it again. The log names `work`. */
export async function tryNoteTokenRefused(
  { database, logger }: { database: Database; logger: Pick<Logger, 'warn'> },
  work: { wabaId: string },
  problem: string | null,
): Promise<void> {
  if (problem === null) return;
  await noteTokenRefused(database, work.wabaId, problem).catch((error: unknown) =>
    logger.warn({ ...work, err: error }, 'a refused access token was not recorded'),
  );
}

export async function noteTokenTaken(trx: Transaction | Database, wabaId: string): Promise<void> {
  await execute(
    trx,
    `update wabas set token_refused_at = null, token_problem = null
      where waba_id = :wabaId and token_refused_at is not null`,
    { wabaId },
  );
}

export type RefusedToken = { wabaId: string; tenantId: string; since: Date; problem: string };

/** The look at the numbers, which would show that the token works, has had its turn by then. */
const SURE_AFTER_SECONDS = 120;

export async function listRefusedTokens(database: Database, limit: number): Promise<RefusedToken[]> {
  return await query<RefusedToken>(
    database,
    `select waba_id as "wabaId", tenant_id as "tenantId", token_refused_at as since, token_problem as problem
       from wabas where token_refused_at < now() - interval '${SURE_AFTER_SECONDS} seconds' and removed_at is null order by waba_id limit :limit`,
    { limit },
  );
}
