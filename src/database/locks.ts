import type { Transaction } from './database.ts';
import { query } from './sql.ts';

/** Key of the advisory lock that makes intake one at a time over all worker processes. */
const INTAKE_LOCK = 7_340_001;

/** Held, shared, while deliveries are queued; alone, while an endpoint's order scope changes. */
export const PUBLISHING_LOCK = 7_340_002;

/** Held while contacts or conversations are added or change their identity: by intake, and by a first message out. */
const CUSTOMERS_LOCK = 7_340_003;

/** Held while an endpoint's order scope changes, so that two processes do not stop publishing one after the other. */
const ORDER_SCOPE_LOCK = 7_340_004;

/** Held by whoever migrates, as long as its connection lives. */
export const MIGRATION_LOCK = 7_340_005;

/**
 * Takes the intake lock for the rest of the transaction; false when another process has it.
 * It ends with the transaction, also when its process dies or freezes (the server ends idle transactions).
 * The locks on customers and publishing come with it; the former may be waited for, for the milliseconds of a send.
 * Statements sent behind it know of it by `HOLDS_INTAKE_LOCK`.
 */
export async function tryIntakeLock(trx: Transaction): Promise<boolean> {
  const [row] = await query<{ locked: boolean }>(
    trx,
    `select locked, set_config('heliograph.takes_in', locked::text, true),
            case when locked then pg_advisory_xact_lock(?::bigint)::text end,
            pg_advisory_xact_lock_shared(?::bigint)
       from (select pg_try_advisory_xact_lock(?::bigint) as locked) as attempt`,
    [CUSTOMERS_LOCK, PUBLISHING_LOCK, INTAKE_LOCK],
  );
  return row?.locked === true;
}

/** SQL: whether `tryIntakeLock` got the lock in this transaction. It costs a loser nothing behind it. */
export const HOLDS_INTAKE_LOCK = `current_setting('heliograph.takes_in', true) = 'true'`;

/**
 * Waits until no body is being taken in, and keeps it so for the rest of the transaction. Whoever changes whose a phone
 * number is, or has bodies wait again, does it under this lock: what intake remembers of that ends with it.
 */
export async function lockIntake(trx: Transaction): Promise<void> {
  await query(trx, 'select pg_advisory_xact_lock(?::bigint)', [INTAKE_LOCK]);
  await query(trx, 'update intake_epoch set epoch = epoch + 1');
}

/** Stays the same until somebody else held the intake lock for a change; asked under that lock. */
export async function intakeEpoch(trx: Transaction): Promise<string> {
  const [row] = await query<{ epoch: string }>(trx, 'select epoch from intake_epoch');
  if (row === undefined) throw new Error('the table intake_epoch is empty');
  return row.epoch;
}

/** Waits until nobody changes contacts or conversations, and keeps it so for the rest of the transaction. */
export async function lockCustomers(trx: Transaction): Promise<void> {
  await query(trx, 'select pg_advisory_xact_lock(?::bigint)', [CUSTOMERS_LOCK]);
}

/** Takes the publishing lock for the rest of the transaction; before anything is read that decides about lanes. */
export async function lockPublishing(trx: Transaction): Promise<void> {
  await query(trx, 'select pg_advisory_xact_lock_shared(?::bigint)', [PUBLISHING_LOCK]);
}

/** Waits until nobody publishes and lets nobody begin until the transaction ends. */
export async function stopPublishing(trx: Transaction): Promise<void> {
  await query(trx, 'select pg_advisory_xact_lock(?::bigint)', [PUBLISHING_LOCK]);
}

/** Takes the order scope lock for the rest of the transaction; false when another process has it. */
export async function tryOrderScopeLock(trx: Transaction): Promise<boolean> {
  const [row] = await query<{ locked: boolean }>(
    trx,
    'select pg_try_advisory_xact_lock(?::bigint) as locked',
    [ORDER_SCOPE_LOCK],
  );
  return row?.locked === true;
}
