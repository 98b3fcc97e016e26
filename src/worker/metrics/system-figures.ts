import { countEndpointModes, oldestDueAt, readBacklog } from '../../deliveries/backlog.ts';
import { countInbox, oldestWaitingBodyAt } from '../../inbound/inbox-admin.ts';
import { readWaitingBodies } from '../../inbound/waiting-bodies.ts';
import { countSealed, type SealedCount } from '../../platform/crypto/secret-keys.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';
import { listHousekeepingSteps } from '../../platform/postgres/worker-processes.ts';

/** What waits, over all tenants and processes. Ages are 0 where nothing waits. */
export type SystemFigures = {
  /** By state of the queue; counting stops at 20,001 in all. */
  openDeliveries: Readonly<Record<string, number>>;
  oldestOpenSeconds: number;
  oldestDueSeconds: number;
  /** By mode. */
  endpoints: Readonly<Record<string, number>>;
  inboxBacklog: number;
  inboxOldestSeconds: number;
  inboxFailed: number;
  /** By the key that encrypted them. */
  storedSecrets: Readonly<Record<string, number>>;
  /** Since when each step of housekeeping has failed, in seconds; 0 when its last turn went well. */
  housekeepingFailingSeconds: Readonly<Record<string, number>>;
  /** Bodies that wait for a phone number which upstream is asked for. */
  inboxAwaitingNumber: number;
  inboxAwaitingNumberSeconds: number;
};

/** Reads them in one transaction; rejects when a statement takes longer than `statementTimeoutMs`. */
export async function readSystemFigures(
  database: Database,
  statementTimeoutMs: number,
): Promise<SystemFigures> {
  return await database.transaction(async (trx) => {
    const limit = `select set_config('statement_timeout', ?, true)`;
    const [, backlog, dueAt, endpoints, inbox, bodyAt, secrets, steps, awaiting] = await Promise.all([
      query(trx, limit, [String(statementTimeoutMs)]),
      readBacklog(trx),
      oldestDueAt(trx),
      countEndpointModes(trx),
      countInbox(trx),
      oldestWaitingBodyAt(trx),
      countSealed(trx),
      listHousekeepingSteps(trx),
      readWaitingBodies(trx),
    ]);
    return {
      openDeliveries: backlog.states,
      oldestOpenSeconds: ageSeconds(backlog.oldestAt),
      oldestDueSeconds: ageSeconds(dueAt),
      endpoints,
      inboxBacklog: inbox.new ?? 0,
      inboxOldestSeconds: ageSeconds(bodyAt),
      inboxFailed: inbox.failed ?? 0,
      storedSecrets: sumByKey(secrets),
      housekeepingFailingSeconds: Object.fromEntries(
        steps.map(({ step, failingSince }) => [step, ageSeconds(failingSince)]),
      ),
      inboxAwaitingNumber: awaiting.count,
      inboxAwaitingNumberSeconds: ageSeconds(awaiting.oldestAt),
    };
  });
}

function sumByKey(counts: readonly SealedCount[]): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const { keyId, count } of counts) sums[keyId] = (sums[keyId] ?? 0) + count;
  return sums;
}

function ageSeconds(at: Date | null): number {
  return at === null ? 0 : Math.max(0, Date.now() - at.getTime()) / 1_000;
}
