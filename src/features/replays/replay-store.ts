import type { ErasedTable, NamedIn } from '../../platform/erasing.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { execute, query, queryOne, queryOnly, queryValue } from '../../platform/postgres/sql.ts';
import type { ReplaySelection } from './replay-selection.ts';

export type ReplayState = 'running' | 'paused' | 'done' | 'cancelled';

/** For each endpoint that is not through, the id where its next page begins. */
export type ReplayCursor = {
  toId: string;
  endpoints: { id: string; nextId: string }[];
  /** Passed over: open, without a body, or of an endpoint that is gone. */
  skipped: number;
};

export type Replay = {
  id: string;
  wabaId: string;
  selection: ReplaySelection;
  state: ReplayState;
  total: number;
  queued: number;
  cursor: ReplayCursor;
  requestedBy: string;
  createdAt: Date;
  finishedAt: Date | null;
};

const REPLAY = `id, waba_id as "wabaId", selection, state, total::float8 as total, queued::float8 as queued,
  cast(cursor as jsonb) as cursor, requested_by as "requestedBy", created_at as "createdAt", finished_at as "finishedAt"`;

export function replayWorkflowId(replayId: string): string {
  return `replay/${replayId}`;
}

export async function insertReplay(
  trx: Transaction,
  wabaId: string,
  replay: { selection: ReplaySelection; total: number; cursor: ReplayCursor; requestedBy: string },
): Promise<Replay> {
  return await queryOnly<Replay>(
    trx,
    `insert into replays (waba_id, selection, state, total, cursor, requested_by)
     values (:wabaId, cast(:selection as jsonb), 'running', :total, :cursor, :requestedBy)
     returning ${REPLAY}`,
    {
      wabaId,
      selection: JSON.stringify(replay.selection),
      total: replay.total,
      cursor: JSON.stringify(replay.cursor),
      requestedBy: replay.requestedBy,
    },
  );
}

export async function findReplay(
  database: Database,
  wabaId: string,
  replayId: string,
): Promise<Replay | null> {
  const text = `select ${REPLAY} from replays where waba_id = :wabaId and id = :replayId`;
  return await queryOne<Replay>(database, text, { wabaId, replayId });
}

export async function findReplayForOperator(database: Database, replayId: string): Promise<Replay | null> {
  return await queryOne<Replay>(database, `select ${REPLAY} from replays where id = :replayId`, { replayId });
}

/** Those before `beforeId`, or the newest. */
export async function listReplays(
  database: Database,
  wabaId: string,
  { beforeId, limit }: { beforeId: string | null; limit: number },
): Promise<Replay[]> {
  return await query<Replay>(
    database,
    `select ${REPLAY} from replays where waba_id = :wabaId and id < coalesce(cast(:beforeId as bigint), 9223372036854775807)
      order by id desc limit :limit`,
    { wabaId, beforeId, limit },
  );
}

export async function countUnfinishedReplays(database: Database, wabaId: string): Promise<number> {
  return (
    (await queryValue<number>(
      database,
      `select cast(count(*) as integer) as n from replays where waba_id = :wabaId and state in ('running', 'paused')`,
      { wabaId },
    )) ?? 0
  );
}

/** No other process changes the replay, or queues for it, until the transaction ends. */
export async function lockReplay(trx: Transaction, wabaId: string, replayId: string): Promise<Replay | null> {
  const text = `select ${REPLAY} from replays where waba_id = :wabaId and id = :replayId for update`;
  return await queryOne<Replay>(trx, text, { wabaId, replayId });
}

export async function setReplayState(trx: Transaction, replayId: string, state: ReplayState): Promise<void> {
  await execute(
    trx,
    `update replays set state = :state,
            finished_at = case when :state in ('done', 'cancelled') then clock_timestamp() end
      where id = :replayId`,
    { replayId, state },
  );
}

/** In the transaction that queued the page: a repetition goes on behind it. */
export async function saveReplayProgress(
  trx: Transaction,
  replayId: string,
  { queued, cursor }: { queued: number; cursor: ReplayCursor },
): Promise<void> {
  const text = 'update replays set queued = :queued, cursor = :cursor where id = :replayId';
  await execute(trx, text, { queued, cursor: JSON.stringify(cursor), replayId });
}

export type ReplayOutcomes = { pending: number; delivered: number; failed: number; dropped: number };

export async function countReplayOutcomes(database: Database, replay: Replay): Promise<ReplayOutcomes> {
  const rows = await query<{ state: keyof ReplayOutcomes; n: number }>(
    database,
    `select state, cast(count(*) as integer) as n from deliveries
      where replay_id = :id and waba_id = :wabaId and day >= (cast(:createdAt as timestamptz) at time zone 'utc')::date - 1
      group by state`,
    { id: replay.id, wabaId: replay.wabaId, createdAt: replay.createdAt },
  );
  const outcomes = { pending: 0, delivered: 0, failed: 0, dropped: 0 };
  for (const { state, n } of rows) outcomes[state] = n;
  return outcomes;
}

export const REPLAYS: ErasedTable = { table: 'replays', count: 'replays', key: 'id' };

export const REPLAYS_NAMED_IN: NamedIn = [['replays', 'requested_by']];
