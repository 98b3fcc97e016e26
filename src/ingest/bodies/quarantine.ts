import { putBack, wakeIntake } from '../../engine/inbox/bodies.ts';
import { lockIntake } from '../../engine/inbox/intake-lock.ts';
import { SHARDS } from '../../engine/inbox/shards.ts';
import { UNCLAIMED } from '../../engine/inbox/waiting-bodies.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { query, queryValue } from '../../platform/postgres/sql.ts';

export type QuarantineTotal = {
  reason: string;
  field: string;
  wabaId: string;
  count: number;
  lastDay: string;
};

/** The items that emitted no event in the last `days` days, and why, the most frequent first; at most 50. */
export async function listQuarantineReasons(database: Database, days: number): Promise<QuarantineTotal[]> {
  return await query<QuarantineTotal>(
    database,
    `select reason, field, waba_id as "wabaId", sum(count)::float8 as count, max(day) as "lastDay"
       from quarantine_counts where day > (now() at time zone 'utc')::date - :days::integer
      group by reason, field, waba_id order by count desc, reason, field, waba_id limit 50`,
    { days },
  );
}

/**
 * The reasons that are counted and are no fault: upstream sends more than there are events for. An app also receives
 * other fields than messages of WABAs that no tenant has (`unknown_waba`); their messages are another matter (`unknown_phone_number`).
 */
const EXPECTED = ['unknown_field', 'unknown_waba', UNCLAIMED];

/** Payloads of a WABA that could not be read. `tenantId` is null where no tenant has the WABA. */
export type UnreadableTotal = {
  wabaId: string;
  tenantId: string | null;
  count: number;
  reasons: string[];
  lastDay: string;
};

/** The items that went into quarantine today or yesterday although it should have become an event; up to `limit` WABAs. */
export async function listUnreadable(database: Database, limit: number): Promise<UnreadableTotal[]> {
  return await query<UnreadableTotal>(
    database,
    `select q.waba_id as "wabaId", w.tenant_id as "tenantId", sum(q.count)::float8 as count,
            array_agg(distinct q.reason order by q.reason) as reasons, max(q.day) as "lastDay"
       from quarantine_counts q left join wabas w on w.waba_id = q.waba_id and w.removed_at is null
      where q.day >= (now() at time zone 'utc')::date - 1 and q.reason <> all (:expected::text[])
      group by q.waba_id, w.tenant_id order by q.waba_id limit :limit`,
    { expected: EXPECTED, limit },
  );
}

/** WABAs that no tenant has, and of which upstream reported today or yesterday to the operator as their partner. */
export async function listUnclaimed(
  database: Database,
  limit: number,
): Promise<{ wabaId: string; count: number; lastDay: string }[]> {
  return await query(
    database,
    `select waba_id as "wabaId", sum(count)::float8 as count, max(day) as "lastDay" from quarantine_counts
      where day >= (now() at time zone 'utc')::date - 1 and reason = :reason
      group by waba_id order by waba_id limit :limit`,
    { reason: UNCLAIMED, limit },
  );
}

export async function oldestWaitingBodyAt(database: Database): Promise<Date | null> {
  return await queryValue<Date>(
    database,
    `select min(oldest.received_at) from unnest(cast(:shards as integer[])) as s (shard)
      cross join lateral (select received_at from inbox where state = 'new' and shard = s.shard
                           order by shard, id limit 1) as oldest`,
    { shards: SHARDS },
  );
}

type WabaArrivals = {
  /** When a conversation last had a message, in either direction; null: never. */
  lastActivityAt: Date | null;
  /** Parts of bodies of the last 7 days that gave no event, by reason. */
  quarantined: { reason: string; count: number }[];
};

export async function readWabaArrivals(database: Database, wabaId: string): Promise<WabaArrivals> {
  const [[latest], quarantined] = await Promise.all([
    query<{ at: Date }>(
      database,
      `select last_message_at as at from conversations where waba_id = :wabaId and merged_into is null
        order by last_message_at desc, id desc limit 1`,
      { wabaId },
    ),
    query<{ reason: string; count: number }>(
      database,
      `select reason, sum(count)::float8 as count from quarantine_counts
        where waba_id = :wabaId and day > (now() at time zone 'utc')::date - 7
        group by reason order by count desc limit 20`,
      { wabaId },
    ),
  ]);
  return { lastActivityAt: latest?.at ?? null, quarantined };
}

/** Per statement: rewriting a million bodies in one would take longer than a statement may. */
const RETRY_PAGE = 5_000;

/**
 * Puts every body that was quarantined or failed back before the intake, with its notes; returns how many. Shard by shard,
 * the oldest of each first: intake stands still in one at a time.
 */
export async function retryInbox(
  database: Database,
  states: readonly ('quarantined' | 'failed')[],
): Promise<number> {
  let changed = 0;
  for (let after: string | null = '0'; after !== null; ) {
    const page: RetryPage = await findRetryPage(database, states, after);
    for (const shard of SHARDS) {
      const own = page.rows.filter((row) => row.shard === shard);
      if (own.length > 0) changed += await retryBodies(database, shard, own, states);
    }
    after = page.last;
  }
  return changed;
}

type RetryPage = { rows: { day: string; id: string; shard: number }[]; last: string | null };

async function findRetryPage(
  database: Database,
  states: readonly string[],
  after: string,
): Promise<RetryPage> {
  const ofState = states.map(
    (state) => `(select received_day as day, id, shard from inbox where state = '${state}' and id > :after
                  order by id limit ${RETRY_PAGE})`,
  );
  const rows = await query<RetryPage['rows'][number]>(
    database,
    `select * from (${ofState.join(' union all ')}) as waiting order by id limit ${RETRY_PAGE}`,
    { after },
  );
  return { rows, last: rows.at(-1)?.id ?? null };
}

async function retryBodies(
  database: Database,
  shard: number,
  rows: RetryPage['rows'],
  states: readonly string[],
): Promise<number> {
  return await database.transaction(async (trx) => {
    await lockIntake(trx, shard);
    wakeIntake(trx, [shard]);
    return await putBack(trx, rows, states);
  });
}

/** Counting a backlog of millions would take longer than anybody waits for a figure. */
const COUNT_LIMIT = 100_000;

/**
 * How many bodies wait, were quarantined, or failed; counting stops at 100,001 of each. Each condition is that of an
 * index: most bodies are done.
 */
export async function countInbox<State extends 'new' | 'quarantined' | 'failed'>(
  database: Database,
  states: readonly State[],
): Promise<Record<State, number>> {
  const counted = states.map(
    (state) => `select '${state}' as state, count(*)
       from (select 1 from inbox where state = '${state}' limit ${COUNT_LIMIT + 1}) as counted`,
  );
  const rows = await query<{ state: string; count: string }>(database, counted.join(' union all '));
  return Object.fromEntries(rows.map((row) => [row.state, Number(row.count)])) as Record<State, number>;
}
