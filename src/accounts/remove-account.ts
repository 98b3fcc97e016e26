import { keyRequestWorkflowId } from '../keys/key-request-store.ts';
import type { Database, Transaction } from '../platform/postgres/database.ts';
import { execute, query } from '../platform/postgres/sql.ts';
import { finishTask, wakeTask } from '../platform/temporal/workflow-tasks.ts';

const FOREIGN_KEY_VIOLATION = '23503';

/** Gives a tenant another name. False: there is none such. */
export async function renameTenantRow(trx: Transaction, tenantId: string, name: string): Promise<boolean> {
  const renamed = 'update tenants set business_name = ? where id = ? and removed_at is null';
  return (await execute(trx, renamed, [name, tenantId])) === 1;
}

/**
 * Takes a number away from its WABA: upstream's list does not bring it back. The row stays, with its history. False: the
 * WABA has no such number.
 */
export async function detachNumber(
  trx: Transaction,
  wabaId: string,
  phoneNumberId: string,
): Promise<boolean> {
  const detached = await execute(
    trx,
    `update phone_numbers set detached = true, removed_at = coalesce(removed_at, now())
      where phone_number_id = ? and waba_id = ? and not detached`,
    [phoneNumberId, wabaId],
  );
  return detached === 1;
}

/** Ends what a WABA can be used by: keys, requests for keys, the access token, what waits for its numbers. */
export async function closeWaba(trx: Transaction, wabaId: string): Promise<void> {
  await execute(trx, 'update api_keys set revoked_at = now() where waba_id = ? and revoked_at is null', [
    wabaId,
  ]);
  const requests = await query<{ id: string }>(
    trx,
    `update api_key_requests set state = 'denied', note = 'the WABA was removed', finished_at = now()
      where waba_id = ? and state in ('requested', 'approved') returning id`,
    [wabaId],
  );
  for (const { id } of requests) await wakeTask(trx, keyRequestWorkflowId(id));
  await execute(
    trx,
    `with dropped as (delete from waiting_bodies where waba_id = ? returning received_day, inbox_id)
     update inbox i set state = 'quarantined' from (select distinct * from dropped) as d
      where i.received_day = d.received_day and i.id = d.inbox_id and i.state = 'waiting'`,
    [wabaId],
  );
  await execute(
    trx,
    `update wabas set removed_at = now(), access_token_sealed = null, numbers_problem = null,
            operations_url = null, operations_secret_sealed = null
      where waba_id = ?`,
    [wabaId],
  );
  await finishTask(trx, `waba-numbers/${wabaId}`);
}

/** Deletes a removed WABA of which there is nothing. False: there is, and it stays. */
export async function deleteEmptyWaba(trx: Transaction, wabaId: string): Promise<boolean> {
  const [used] = await query(trx, 'select 1 from events where waba_id = ? limit 1', [wabaId]);
  if (used !== undefined) return false;
  return await unlessReferred(trx, async (savepoint) => {
    await execute(savepoint, 'delete from api_key_requests where waba_id = ?', [wabaId]);
    await execute(savepoint, 'delete from api_keys where waba_id = ?', [wabaId]);
    await execute(savepoint, 'delete from phone_numbers where waba_id = ?', [wabaId]);
    await execute(savepoint, 'delete from wabas where waba_id = ?', [wabaId]);
  });
}

/** Takes a tenant away: its users, invitations and sessions end. The row stays when removed WABAs of it do. */
export async function closeTenant(trx: Transaction, tenantId: string): Promise<void> {
  for (const table of ['user_sessions', 'invitations', 'memberships']) {
    await execute(trx, `delete from ${table} where tenant_id = ?`, [tenantId]);
  }
  await execute(trx, 'update tenants set removed_at = now() where id = ?', [tenantId]);
  await unlessReferred(trx, async (savepoint) => {
    await execute(savepoint, 'delete from tenants where id = ?', [tenantId]);
  });
}

/** Which tenant has the WABA, or had it and its history is kept; null: nobody. */
export async function wabaHolder(
  database: Database,
  wabaId: string,
): Promise<{ tenantId: string; removed: boolean } | null> {
  const [row] = await query<{ tenantId: string; removed: boolean }>(
    database,
    'select tenant_id as "tenantId", removed_at is not null as removed from wabas where waba_id = ?',
    [wabaId],
  );
  return row ?? null;
}

async function unlessReferred(
  trx: Transaction,
  work: (savepoint: Transaction) => Promise<void>,
): Promise<boolean> {
  try {
    await trx.transaction(work);
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === FOREIGN_KEY_VIOLATION) return false;
    throw error;
  }
}
