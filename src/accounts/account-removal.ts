import { deleteEndpoint } from '../endpoints/endpoint-modes.ts';
import { listEndpoints } from '../endpoints/store.ts';
import { shardOf } from '../inbound/inbox.ts';
import { type Audited, recordAudit, recordChange } from '../platform/audit/audit.ts';
import { type Database, lockIntake } from '../platform/postgres/database.ts';
import { checkName, checkUpstreamId, RequestError } from '../platform/request-input.ts';
import { listTenantWabas } from './account-list.ts';
import { knownTenant, knownWaba } from './known-accounts.ts';
import { closeTenant, closeWaba, deleteEmptyWaba, detachNumber, renameTenantRow } from './remove-account.ts';

type Tools = { database: Database } & Audited;

/** Gives a tenant another name. Throws RequestError: `invalid_value`, `unknown_tenant`. */
export async function renameTenant(
  { database, actor: { name: actor, ...request } }: Tools,
  userId: string,
  name: string,
): Promise<{ userId: string; businessName: string }> {
  const businessName = checkName('The business name', name);
  const before = await knownTenant(database, userId);
  await database.transaction(async (trx) => {
    await renameTenantRow(trx, userId, businessName);
    const detail = { from: before.businessName, to: businessName };
    const tenant = { tenantId: userId, wabaId: null, target: `tenant ${userId}`, detail };
    await recordAudit(trx, { ...tenant, ...request, actor, action: 'tenant.renamed' });
  });
  return { userId, businessName };
}

/**
 * Takes a number away from its WABA, also when upstream goes on listing it: it leaves `/me`, cannot send, and what comes
 * for it is quarantined. Its history stays. Adding it by hand brings it back. Throws RequestError: `invalid_value`,
 * `unknown_waba`, `unknown_phone_number`.
 */
export async function removeNumber(
  { database, actor }: Tools,
  wabaId: string,
  phoneNumberId: string,
): Promise<void> {
  await knownWaba(database, wabaId);
  checkUpstreamId('The phone number id', phoneNumberId);
  await database.transaction(async (trx) => {
    await lockIntake(trx, shardOf(wabaId));
    if (!(await detachNumber(trx, wabaId, phoneNumberId))) {
      throw new RequestError('unknown_phone_number', `WABA ${wabaId} has no phone number ${phoneNumberId}.`);
    }
    const detail = { phoneNumberId };
    await recordChange(trx, actor, {
      wabaId,
      action: 'waba.number_removed',
      target: `WABA ${wabaId}`,
      detail,
    });
  });
}

/**
 * Takes a WABA away: its endpoints are deleted with what waits for them, its keys revoked, its token forgotten, and
 * what comes for its numbers is quarantined. When nothing was ever made of it, it is gone; otherwise (`kept`) its history
 * stays and only the same tenant can have it again, because a WABA's data must not come to another.
 * When it is cut off, it can be repeated. Throws RequestError: `invalid_value`, `unknown_waba`.
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
    await closeWaba(trx, wabaId);
    return !(await deleteEmptyWaba(trx, wabaId));
  });
  return { wabaId, endpoints: endpoints.length, dropped, kept };
}

/** Takes a tenant away with its WABAs (`removeWaba`); its users lose it. Throws RequestError: `invalid_value`, `unknown_tenant`. */
export async function removeTenant(
  tools: Tools,
  userId: string,
): Promise<{ userId: string; wabaIds: string[]; kept: string[] }> {
  const {
    database,
    actor: { name: actor, ...request },
  } = tools;
  const { businessName } = await knownTenant(database, userId);
  const wabaIds = (await listTenantWabas(database, userId)).map(({ wabaId }) => wabaId);
  const kept: string[] = [];
  for (const wabaId of wabaIds) if ((await removeWaba(tools, wabaId)).kept) kept.push(wabaId);
  await database.transaction(async (trx) => {
    const left = await listTenantWabas(trx, userId);
    if (left.length > 0) throw new RequestError('tenant_in_use', 'A WABA was added meanwhile; try again.');
    const tenant = { tenantId: userId, wabaId: null, target: `tenant ${userId}` };
    const detail = { businessName, wabaIds: wabaIds.join(', ') };
    await recordAudit(trx, { ...tenant, ...request, detail, actor, action: 'tenant.removed' });
    await closeTenant(trx, userId);
  });
  return { userId, wabaIds, kept };
}
