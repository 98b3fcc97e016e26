import type { Database } from '../../../platform/postgres/database.ts';
import { listUpstreamProblemsSince } from '../../accounts/upstream-problems.ts';
import { lastOutcomes } from './broadcast-recipients.ts';
import type { Broadcast } from './broadcast-store.ts';

const JUDGED = 200;
const MOST_FAILED = JUDGED * 0.2;

/** Errors of upstream after which further messages would fail too, or do harm. */
const STOPPING: ReadonlyMap<string, string> = new Map([
  ['131048', 'upstream limits the number, because customers reported its messages as spam (131048)'],
  ['130497', 'upstream restricts messages to customers in some countries (130497)'],
  ['132015', 'upstream paused the template for its quality (132015)'],
]);

/** Why a running broadcast must not go on; null: it may. Only what came since it began, or was resumed, counts. */
export async function reasonToPause(
  database: Database,
  { id, wabaId, runningSince }: Pick<Broadcast, 'id' | 'wabaId' | 'runningSince'>,
): Promise<string | null> {
  const since = runningSince ?? new Date(0);
  const [problem] = await listUpstreamProblemsSince(database, { wabaId, kind: 'account_restricted', since });
  if (problem !== undefined) return problem;
  const outcomes = await lastOutcomes(database, { broadcastId: id, since, limit: JUDGED });
  const failed = outcomes.filter(({ state }) => state === 'failed');
  for (const { code } of failed) {
    const reason = STOPPING.get(code ?? '');
    if (reason !== undefined) return `A message failed: ${reason}.`;
  }
  if (failed.length <= MOST_FAILED) return null;
  const [most] = mostFrequent(failed.map(({ code }) => code ?? 'unknown'));
  return `${failed.length} of the last ${outcomes.length} messages failed, most with the error ${most}.`;
}

function mostFrequent(codes: readonly string[]): string[] {
  const groups = [...Map.groupBy(codes, (code) => code)];
  return groups.toSorted(([, a], [, b]) => b.length - a.length).map(([code]) => code);
}
