import type { Database, Transaction } from '../../../platform/postgres/database.ts';
import { execute, query, queryOne, queryOnly } from '../../../platform/postgres/sql.ts';

export const BROADCAST_STATES = ['draft', 'scheduled', 'running', 'paused', 'done', 'cancelled'] as const;
export type BroadcastState = (typeof BROADCAST_STATES)[number];

export type Broadcast = {
  id: string;
  wabaId: string;
  phoneNumberId: string;
  name: string;
  /** JSON text. */
  template: string;
  state: BroadcastState;
  /** Why it paused itself; null: it was paused by request, or is not paused. */
  pausedBecause: string | null;
  recipients: number;
  /** Of them, those that have no message yet. */
  pending: number;
  sendAt: Date | null;
  requestedBy: string;
  createdAt: Date;
  startedAt: Date | null;
  runningSince: Date | null;
  finishedAt: Date | null;
};

/** Without the count of those that are pending, which are up to all. */
export type BroadcastRow = Omit<Broadcast, 'pending'>;

const ROW = `b.id, b.waba_id as "wabaId", b.phone_number_id as "phoneNumberId", b.name, b.template, b.state,
  b.paused_because as "pausedBecause", b.recipients,
  b.send_at as "sendAt", b.requested_by as "requestedBy", b.created_at as "createdAt", b.started_at as "startedAt",
  b.running_since as "runningSince", b.finished_at as "finishedAt"`;

const COLUMNS = `${ROW},
  (select cast(count(*) as integer) from broadcast_recipients r where r.broadcast_id = b.id and r.state = 'pending') as pending`;

export type BroadcastIds = { wabaId: string; broadcastId: string };

export function broadcastWorkflowId(broadcastId: string): string {
  return `broadcast/${broadcastId}`;
}

export async function insertBroadcast(
  trx: Transaction,
  broadcast: Pick<Broadcast, 'wabaId' | 'phoneNumberId' | 'name' | 'template' | 'sendAt' | 'requestedBy'>,
): Promise<string> {
  const { id } = await queryOnly<{ id: string }>(
    trx,
    `insert into broadcasts (waba_id, phone_number_id, name, template, send_at, requested_by)
     values (:wabaId, :phoneNumberId, :name, :template, :sendAt, :requestedBy) returning id`,
    broadcast,
  );
  return id;
}

const ONE = 'b.waba_id = :wabaId and b.id = :broadcastId';

export async function findBroadcast(database: Database, ids: BroadcastIds): Promise<Broadcast | null> {
  return await queryOne<Broadcast>(database, `select ${COLUMNS} from broadcasts b where ${ONE}`, ids);
}

/** No other process changes it until the transaction ends. */
export async function lockBroadcast(trx: Transaction, ids: BroadcastIds): Promise<BroadcastRow | null> {
  return await queryOne<BroadcastRow>(trx, `select ${ROW} from broadcasts b where ${ONE} for update`, ids);
}

export async function findBroadcastForOperator(
  database: Database,
  broadcastId: string,
): Promise<{ wabaId: string } | null> {
  const text = 'select waba_id as "wabaId" from broadcasts where id = :broadcastId';
  return await queryOne<{ wabaId: string }>(database, text, { broadcastId });
}

/** Those before `beforeId`, or the newest. */
export async function listBroadcasts(
  database: Database,
  wabaId: string,
  { beforeId, limit }: { beforeId: string | null; limit: number },
): Promise<Broadcast[]> {
  return await query<Broadcast>(
    database,
    `select ${COLUMNS} from broadcasts b
      where b.waba_id = :wabaId and b.id < coalesce(cast(:beforeId as bigint), 9223372036854775807)
      order by b.id desc limit :limit`,
    { wabaId, beforeId, limit },
  );
}

/** Counts of one WABA do not change until the transaction ends, other than by the caller. */
export async function lockBroadcastsOf(trx: Transaction, wabaId: string): Promise<void> {
  const text = `select pg_advisory_xact_lock(hashtextextended('broadcasts ' || cast(:wabaId as text), 0))`;
  await query(trx, text, { wabaId });
}

/** Up to `most` of them. */
export async function countBroadcasts(
  trx: Transaction,
  wabaId: string,
  states: readonly BroadcastState[],
  most: number,
): Promise<number> {
  const rows = await query(
    trx,
    'select 1 from broadcasts where waba_id = :wabaId and state = any (:states::text[]) limit :most',
    { wabaId, states, most },
  );
  return rows.length;
}

export async function setBroadcastState(
  trx: Transaction,
  broadcastId: string,
  { state, pausedBecause = null }: { state: BroadcastState; pausedBecause?: string | null },
): Promise<void> {
  await execute(
    trx,
    `update broadcasts
        set state = :state, paused_because = :pausedBecause,
            started_at = case when :state in ('scheduled', 'running') then coalesce(started_at, clock_timestamp()) else started_at end,
            running_since = case when :state = 'running' then clock_timestamp() else running_since end,
            finished_at = case when :state in ('done', 'cancelled') then clock_timestamp() end
      where id = :broadcastId`,
    { broadcastId, state, pausedBecause },
  );
}

export async function addToRecipients(trx: Transaction, broadcastId: string, added: number): Promise<number> {
  const text =
    'update broadcasts set recipients = recipients + :added where id = :broadcastId returning recipients';
  return (await queryOnly<{ recipients: number }>(trx, text, { broadcastId, added })).recipients;
}
