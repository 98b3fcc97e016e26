import type { Transaction } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';

/** With a shard: the lock that makes its intake one at a time over all worker processes. */
export const INTAKE_LOCK = 7_340_001;

/** SQL: the shards whose locks `tryIntakeLocks` got in this transaction. It costs a loser nothing behind it. */
export const HELD_SHARDS = `cast(current_setting('heliograph.takes_in', true) as integer[])`;

/**
 * Waits until no body of the shard is being ingested, and keeps it that way for the rest of the transaction. Changes of
 * the owner of a phone number, and of bodies that wait again, are made under this lock: what intake remembers of that ends with it.
 */
export async function lockIntake(trx: Transaction, shard: number): Promise<void> {
  await holdIntake(trx, shard);
  await query(trx, 'update intake_epochs set epoch = epoch + 1 where shard = :shard', { shard });
}

/** As `lockIntake`, for changes of what intake reads again for each body: it goes on with what it remembers. */
export async function holdIntake(trx: Transaction, shard: number): Promise<void> {
  await query(trx, 'select pg_advisory_xact_lock(cast(:intakeLock as integer), cast(:shard as integer))', {
    intakeLock: INTAKE_LOCK,
    shard,
  });
}

/** By shard that is held: stays the same until another process has held its lock for a change. */
export async function intakeEpochs(trx: Transaction): Promise<Map<number, string>> {
  return await epochsOf(trx, HELD_SHARDS, {});
}

/** As `intakeEpochs`, without the locks: what is read behind it may be younger, and never older. */
export async function readEpochs(trx: Transaction, shards: readonly number[]): Promise<Map<number, string>> {
  return await epochsOf(trx, ':shards::integer[]', { shards });
}

async function epochsOf(
  trx: Transaction,
  shardsSql: string,
  bindings: { shards?: readonly number[] },
): Promise<Map<number, string>> {
  const text = `select shard, epoch from intake_epochs where shard = any (${shardsSql})`;
  const rows = await query<{ shard: number; epoch: string }>(trx, text, bindings);
  return new Map(rows.map(({ shard, epoch }) => [shard, epoch]));
}
