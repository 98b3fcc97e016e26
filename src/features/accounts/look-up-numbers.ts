import { lockIntake } from '../../engine/inbox/intake-lock.ts';
import { shardOf } from '../../engine/inbox/shards.ts';
import { countWaitingBodies } from '../../engine/inbox/waiting-bodies.ts';
import type { SecretBox } from '../../platform/crypto/secret-box.ts';
import type { GraphClient } from '../../platform/graph/graph-client.ts';
import { GraphError } from '../../platform/graph/graph-error.ts';
import type { Logger } from '../../platform/logger.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { retryDelayMs } from '../../platform/temporal/activity-kit.ts';
import { finishAskedTask, finishTask } from '../../platform/temporal/workflow-tasks.ts';
import {
  AccessTokenProblem,
  noteTokenRefused,
  noteTokenTaken,
  openAccessToken,
  tokenProblemOf,
} from './access-tokens.ts';
import {
  beginNumberLookup,
  followNumbers,
  numbersWorkflowId,
  saveNumbersProblem,
} from './followed-numbers.ts';
import { walkTemplates } from './template-walk.ts';
import { templatesListedAt } from './templates.ts';
import { copyCosts } from './usage-costs.ts';

export type NumberLookupTools = {
  database: Database;
  secretBox: SecretBox;
  graph: Pick<GraphClient, 'listPhoneNumbers' | 'listMessageTemplates' | 'readPricing'>;
  logger: Pick<Logger, 'warn'>;
};

/** `tries`: how often upstream was asked in vain. */
type AskedNumbers = { wabaId: string; tries: number };

/** What a look-up came to; `waitMs`: until the next one, null when there is nothing more to do. */
export type NumberLookup = { summary: string; waitMs: number | null };

/** For what came while upstream was asked. */
const NEXT_LOOK_MS = 60_000;

/** Asks upstream for the numbers of a WABA and follows what it says. */
export async function lookUpNumbers(tools: NumberLookupTools, asked: AskedNumbers): Promise<NumberLookup> {
  const { database } = tools;
  const { wabaId } = asked;
  const askedAt = await beginNumberLookup(database, wabaId);
  if (askedAt === null) {
    await database.transaction((trx) => finishTask(trx, numbersWorkflowId(wabaId)));
    return { summary: 'There is no such WABA any more.', waitMs: null };
  }
  try {
    const token = await openAccessToken(tools, wabaId);
    const listed = await tools.graph.listPhoneNumbers(wabaId, token);
    await noteTokenTaken(database, wabaId);
    const { added, removed, taken, released, refused, waiting } = await followNumbers(
      tools,
      wabaId,
      listed,
      askedAt,
    );
    const place = { client: tools.graph, token };
    if (!(await areTemplatesFresh(database, wabaId)))
      await tryCopy(tools, wabaId, 'message templates', () => walkTemplates(database, wabaId, place));
    await tryCopy(tools, wabaId, 'reported costs', () => copyCosts(database, wabaId, place));
    const summary =
      `${listed.length} numbers: ${added.length} added, ${removed.length} removed, ` +
      `${taken.length} of other WABAs. ${released} bodies are taken in, ${refused} are quarantined.`;
    return { summary, waitMs: waiting > 0 ? NEXT_LOOK_MS : null };
  } catch (error) {
    if (!(error instanceof GraphError) && !(error instanceof AccessTokenProblem)) throw error;
    return await settleFailure(tools, asked, error);
  }
}

const TEMPLATES_FRESH_MS = 20 * 3_600_000;

/** They are listed once a day, which makes up for reports that were lost. */
async function areTemplatesFresh(database: Database, wabaId: string): Promise<boolean> {
  const listedAt = await templatesListedAt(database, wabaId);
  return listedAt !== null && Date.now() - listedAt.getTime() < TEMPLATES_FRESH_MS;
}

/** Numbers do not wait for it: without an answer the next look tries again. */
async function tryCopy(
  { logger }: NumberLookupTools,
  wabaId: string,
  what: string,
  copy: () => Promise<unknown>,
): Promise<void> {
  try {
    await copy();
  } catch (error) {
    if (!(error instanceof GraphError)) throw error;
    logger.warn({ wabaId, problem: error.message }, `the ${what} of a WABA could not be read`);
  }
}

/** Bodies that wait keep it going, slowly; without them, what only an operator can fix is left to the next day. */
async function settleFailure(
  { database, logger }: NumberLookupTools,
  { wabaId, tries }: AskedNumbers,
  error: GraphError | AccessTokenProblem,
): Promise<NumberLookup> {
  const problem = error.message;
  // Without a token nothing was refused: a WABA may do without one until it sends.
  const tokenProblem = error instanceof GraphError ? tokenProblemOf(error) : null;
  if (tokenProblem !== null) await noteTokenRefused(database, wabaId, tokenProblem);
  const waiting = await database.transaction(async (trx) => {
    // A body that begins to wait now must find the task or make one.
    await lockIntake(trx, shardOf(wabaId));
    await saveNumbersProblem(trx, wabaId, problem);
    const bodies = await countWaitingBodies(trx, wabaId);
    const mayPass = error instanceof GraphError && error.transient;
    if (bodies > 0 || mayPass) return bodies;
    await finishAskedTask(trx, numbersWorkflowId(wabaId));
    return null;
  });
  if (waiting === null) return { summary: problem, waitMs: null };
  if (waiting > 0)
    logger.warn({ wabaId, waiting, problem }, 'bodies wait for a phone number that cannot be looked up');
  const retryAfterMs = error instanceof GraphError ? error.retryAfterMs : null;
  const waitMs = retryDelayMs(tries + 1, retryAfterMs);
  return { summary: `${waiting} bodies wait. ${problem}`, waitMs };
}
