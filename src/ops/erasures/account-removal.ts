import { listEndpoints } from '../../engine/endpoint/store.ts';
import { lockIntake } from '../../engine/inbox/intake-lock.ts';
import { shardOf } from '../../engine/inbox/shards.ts';
import { dropWaitingBodies } from '../../engine/inbox/waiting-bodies.ts';
import {
  closeTenantRow,
  closeWabaRow,
  deleteTenantRow,
  deleteWabaRows,
  knownTenant,
  knownWaba,
  listTenantWabas,
} from '../../features/accounts/accounts.ts';
import { forgetBrandOfTenant } from '../../features/accounts/brands.ts';
import { deleteEndpoint } from '../../features/endpoints/endpoint-modes.ts';
import { deleteKeysOfWaba, revokeKeysOfWaba } from '../../features/keys/key-request-store.ts';
import { forgetLinksOfTenant } from '../../features/setup-links/setup-link-store.ts';
import { endLinksOfWaba } from '../../features/setup-links/setup-links.ts';
import { forgetTenantOfUsers } from '../../features/users/user-store.ts';
import { type Audited, recordBy, recordChange } from '../../platform/audit/audit.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';
import { RequestError } from '../../platform/request-input.ts';
import { finishTask } from '../../platform/temporal/workflow-tasks.ts';

type Tools = { database: Database } & Audited;

/**
 * Its endpoints are deleted with what waits for them, its keys revoked, its token forgotten, and what comes for its numbers is quarantined.
 * When nothing was ever made of it, it is gone; otherwise (`kept`) its history stays and only the same tenant can have it again, because a
 * WABA's data must not come to another. When it is cut off, it can be repeated. Throws RequestError: `invalid_value`, `unknown_waba`.
 */
export async function removeWaba(
  tools: Tools,
  wabaId: string,
): Promise<{ wabaId: string; endpoints: number; dropped: number; kept: boolean }> {
  const { database, actor } = tools;
  await knownWaba(database, wabaId);
  const endpoints = await listEndpoints(database, wabaId);
  let dropped = 0;
  for (const { id } of endpoints) dropped += (await deleteEndpoint(tools, wabaId, id)).dropped;
  const kept = await database.transaction(async (trx) => {
    await lockIntake(trx, shardOf(wabaId));
    await knownWaba(trx, wabaId);
    const detail = { endpoints: endpoints.length, dropped };
    await recordChange(trx, actor, { wabaId, action: 'waba.removed', target: `WABA ${wabaId}`, detail });
    await endLinksOfWaba({ database: trx, actor }, wabaId);
    await closeWaba(trx, wabaId);
    return !(await deleteEmptyWaba(trx, wabaId));
  });
  return { wabaId, endpoints: endpoints.length, dropped, kept };
}

/** Its WABAs go as by `removeWaba`; its users lose it. Throws RequestError: `invalid_value`, `unknown_tenant`. */
export async function removeTenant(
  tools: Tools,
  userId: string,
): Promise<{ userId: string; wabaIds: string[]; kept: string[] }> {
  const { database, actor } = tools;
  const { businessName } = await knownTenant(database, userId);
  const wabaIds = (await listTenantWabas(database, userId)).map(({ wabaId }) => wabaId);
  const kept: string[] = [];
  for (const wabaId of wabaIds) if ((await removeWaba(tools, wabaId)).kept) kept.push(wabaId);
  await database.transaction(async (trx) => {
    const left = await listTenantWabas(trx, userId);
    if (left.length > 0) throw new RequestError('tenant_in_use', 'A WABA was added meanwhile; try again.');
    const removed = { tenantId: userId, wabaId: null, action: 'tenant.removed', target: `tenant ${userId}` };
    await recordBy(trx, actor, { ...removed, detail: { businessName, wabaIds: wabaIds.join(', ') } });
    await closeTenant(trx, userId);
  });
  return { userId, wabaIds, kept };
}

const FOREIGN_KEY_VIOLATION = '23503';

async function closeWaba(trx: Transaction, wabaId: string): Promise<void> {
  await revokeKeysOfWaba(trx, wabaId);
  await dropWaitingBodies(trx, wabaId);
  await closeWabaRow(trx, wabaId);
  await finishTask(trx, `waba-numbers/${wabaId}`);
}

/** False: something is left of it, and it stays. */
export async function deleteEmptyWaba(trx: Transaction, wabaId: string): Promise<boolean> {
  // Statuses are found by their number, and refer to nothing.
  const [used] = await query(
    trx,
    `select 1 where exists (select from events where waba_id = :wabaId)
        or exists (select from phone_numbers n join message_statuses s on s.phone_number_id = n.phone_number_id
                    where n.waba_id = :wabaId)
        or exists (select from phone_numbers n join message_states s on s.phone_number_id = n.phone_number_id
                    where n.waba_id = :wabaId)`,
    { wabaId },
  );
  if (used !== undefined) return false;
  return await unlessReferred(trx, async (savepoint) => {
    await deleteKeysOfWaba(savepoint, wabaId);
    await deleteWabaRows(savepoint, wabaId);
  });
}

/** Its users, invitations and sessions end. The row stays when removed WABAs of it do. */
export async function closeTenant(trx: Transaction, tenantId: string): Promise<void> {
  await forgetTenantOfUsers(trx, tenantId);
  await forgetBrandOfTenant(trx, tenantId);
  await forgetLinksOfTenant(trx, tenantId);
  await closeTenantRow(trx, tenantId);
  await unlessReferred(trx, async (savepoint) => await deleteTenantRow(savepoint, tenantId));
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
