import { columnsOf } from '../../platform/postgres/arrays.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { execute, queryOnly, queryValue } from '../../platform/postgres/sql.ts';
import { countQuarantined } from './quarantine-counts.ts';
import { shardOf } from './shards.ts';

/** Why a part of a body waits: upstream is asked for its phone number. */
export const AWAITS_NUMBER = 'awaits_phone_number';

export const NOT_OF_WABA = 'phone_number_not_of_waba';

/** About a customer of the operator as a partner of upstream, whose WABA no tenant has. */
export const UNCLAIMED = 'unclaimed_account';

export type WaitingBody = { wabaId: string; phoneNumberId: string; day: string; id: string };

export async function insertWaitingBodies(trx: Transaction, bodies: readonly WaitingBody[]): Promise<void> {
  await execute(
    trx,
    `insert into waiting_bodies (waba_id, phone_number_id, received_day, inbox_id)
     select * from unnest(:wabaId::text[], :phoneNumberId::text[], :day::date[], :id::bigint[])
     on conflict (waba_id, phone_number_id, received_day, inbox_id) do update
        set refused = false, waiting_since = now()`,
    columnsOf(bodies, 'wabaId', 'phoneNumberId', 'day', 'id'),
  );
}

/**
 * Puts the bodies that waited for numbers which the WABA has by now back before the intake; returns how many. The
 * caller holds the intake lock since before it added the numbers, so that no later body overtakes them.
 */
export async function releaseWaitingBodies(trx: Transaction, wabaId: string): Promise<number> {
  const released = await execute(
    trx,
    `with freed as (
       delete from waiting_bodies w using phone_numbers n
        where w.waba_id = :wabaId and n.phone_number_id = w.phone_number_id and n.waba_id = w.waba_id and not n.detached
       returning w.received_day, w.inbox_id
     )
     update inbox i set state = 'new', processed_at = null
       from (select distinct received_day, inbox_id from freed) as f
      where i.received_day = f.received_day and i.id = f.inbox_id and i.state in ('waiting', 'quarantined', 'failed')`,
    { wabaId },
  );
  if (released > 0) trx.notify('heliograph_inbox', String(shardOf(wabaId)));
  return released;
}

/** Quarantines what waited since before upstream was asked, for numbers that it does not list; returns how many. */
export async function refuseWaitingBodies(trx: Transaction, wabaId: string, askedAt: Date): Promise<number> {
  const refused = await execute(
    trx,
    `with refused as (
       update waiting_bodies set refused = true where waba_id = :wabaId and not refused and waiting_since <= :askedAt
       returning received_day, inbox_id, phone_number_id
     )
     update inbox i
        set state = 'quarantined',
            notes = (select jsonb_agg(case when n ->> 'reason' = '${AWAITS_NUMBER}'
                                           then n || '{"reason": "${NOT_OF_WABA}"}' else n end)
                       from jsonb_array_elements(i.notes) as n)
       from (select distinct received_day, inbox_id from refused) as r
      where i.received_day = r.received_day and i.id = r.inbox_id and i.state = 'waiting'
        and not exists (select from waiting_bodies w
                         where w.received_day = i.received_day and w.inbox_id = i.id and w.waba_id <> :wabaId
                           and not w.refused)`,
    { wabaId, askedAt },
  );
  if (refused > 0)
    await countQuarantined(trx, [{ reason: NOT_OF_WABA, field: 'messages', wabaId, count: refused }]);
  return refused;
}

export async function readWaitingBodies(
  database: Database,
): Promise<{ count: number; oldestAt: Date | null }> {
  return await queryOnly<{ count: number; oldestAt: Date | null }>(
    database,
    `select count(*)::integer as count, min(waiting_since) as "oldestAt" from waiting_bodies where not refused`,
  );
}

export async function countWaitingBodies(database: Database, wabaId: string): Promise<number> {
  const counting = 'select count(*)::integer from waiting_bodies where waba_id = :wabaId and not refused';
  return (await queryValue<number>(database, counting, { wabaId })) ?? 0;
}

/** Forgets what waited of a day whose bodies were dropped. */
export async function forgetWaitingBodies(database: Database, day: string): Promise<void> {
  await execute(
    database,
    `delete from waiting_bodies w
      where received_day = cast(:day as date)
        and not exists (select from inbox_default i where i.received_day = w.received_day and i.id = w.inbox_id)`,
    { day },
  );
}

/** Quarantines what waits for numbers of a WABA that is taken away. */
export async function dropWaitingBodies(trx: Transaction, wabaId: string): Promise<void> {
  await execute(
    trx,
    `with dropped as (delete from waiting_bodies where waba_id = :wabaId returning received_day, inbox_id)
     update inbox i set state = 'quarantined' from (select distinct * from dropped) as d
      where i.received_day = d.received_day and i.id = d.inbox_id and i.state = 'waiting'`,
    { wabaId },
  );
}
