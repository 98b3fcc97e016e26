import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { execute } from '../../platform/postgres/sql.ts';

/** Who has a conversation; `none`: it was released, and upstream decides who gets the next message. */
export type StoredOwner = 'us' | 'other' | 'unknown' | 'none';

export type ThreadReport = {
  conversationId: string;
  owner: StoredOwner;
  role: string | null;
  since: Date;
};

/**
 * The latest report counts, in whatever order they come. Of different ones of the same second none is taken for the right one; a call of
 * ours has a finer time than upstream's reports, and counts more than one of its second that came before it.
 */
export async function noteThreads(
  trx: Transaction | Database,
  reports: readonly ThreadReport[],
): Promise<void> {
  for (const report of latestOf(reports)) {
    await execute(
      trx,
      `update conversations c
          set thread_owner = case when date_trunc('second', thread_since) = :since and thread_owner <> :owner then 'unknown' else :owner end,
              thread_role = case when thread_since is distinct from cast(:since as timestamptz) then :role
                                 when thread_owner = :owner then coalesce(thread_role, :role) end,
              thread_since = :since
        where id = :conversationId and coalesce(date_trunc('second', thread_since) <= :since, true)`,
      report,
    );
  }
}

/** One per conversation: what is older than another report of the batch would change nothing in the end. */
function latestOf(reports: readonly ThreadReport[]): ThreadReport[] {
  const latest = new Map<string, ThreadReport[]>();
  for (const report of reports) {
    const [known, ...others] = latest.get(report.conversationId) ?? [];
    if (known === undefined || known.since < report.since) latest.set(report.conversationId, [report]);
    else if (known.since.getTime() === report.since.getTime())
      latest.set(report.conversationId, [known, ...others, report]);
  }
  return [...latest.values()].flat();
}
