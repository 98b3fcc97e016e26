import {
  type ExternalTenant,
  externalTenant,
  lockExternalId,
} from '../../features/accounts/external-tenants.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import { openRateLimitStore } from '../../platform/postgres/rate-limit-store.ts';
import { RateLimitError, RequestError } from '../../platform/request-input.ts';
import { ApiError } from '../errors/api-error.ts';
import type { PlatformCall } from './platform-operation.ts';

type InTenant = PlatformCall['tools'] & { database: Transaction };

/** Changes something of a tenant, one change of it at a time. A WABA of another tenant is none. Throws RequestError: `unknown_tenant`, `unknown_waba`. */
export async function inTenant<T>(
  { tools }: PlatformCall,
  { externalId, wabaId }: { externalId: string; wabaId?: string },
  work: (tools: InTenant, tenant: ExternalTenant) => Promise<T>,
): Promise<T> {
  return await tools.database.transaction(async (database) => {
    await lockExternalId(database, externalId);
    const tenant = await externalTenant(database, externalId);
    if (wabaId !== undefined) requireWaba(tenant, wabaId);
    return await work({ ...tools, database }, tenant);
  });
}

/** Throws RequestError `unknown_waba`, the same for one of another tenant. */
export function requireWaba({ wabas }: ExternalTenant, wabaId: string): void {
  if (wabas.some((waba) => waba.wabaId === wabaId)) return;
  throw new RequestError('unknown_waba', 'The tenant has no such WABA.');
}

const HOUR_SECONDS = 3_600;
const PER_HOUR = { 'new-tenants': 600, 'new-tenant-keys': 1_000 };

/** A stolen platform key makes no more than this, whatever it asks. An operator's command is not counted. Throws RateLimitError. */
export function countingNew(
  { key }: PlatformCall,
  kind: keyof typeof PER_HOUR,
): (trx: Transaction) => Promise<void> {
  return async (trx) => {
    if (key === null) return;
    const store = openRateLimitStore(trx, { kind, windowSeconds: HOUR_SECONDS });
    const { consumed, remainingMs } = await store.add('installation', 1);
    const most = PER_HOUR[kind];
    if (consumed <= most) return;
    throw new RateLimitError(
      `The platform API makes at most ${most} ${kind.replaceAll('-', ' ')} an hour.`,
      remainingMs,
    );
  };
}

/** Throws ApiError 403 for a scope that the platform key may not give. */
export function grantingOf({ key }: PlatformCall): (scopes: readonly string[]) => void {
  return (scopes) => {
    if (key === null) return;
    const { grantableScopes } = key;
    const wrong = scopes.find((scope) => !grantableScopes.some((grantable) => grantable === scope));
    if (wrong === undefined) return;
    const message = `The platform key may give ${grantableScopes.join(', ')}, and not ${wrong}.`;
    throw new ApiError('scope_not_grantable', { message, param: 'scopes' });
  };
}
