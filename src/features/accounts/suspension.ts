import type { Database } from '../../platform/postgres/database.ts';
import { queryValue } from '../../platform/postgres/sql.ts';
import { RequestError } from '../../platform/request-input.ts';

/** For the tenant: the reason is the operator's own. */
export const SUSPENDED = 'The business is suspended: it receives messages, and sends and changes nothing.';

export async function isSuspended(database: Database, tenantId: string): Promise<boolean> {
  const text = 'select suspended_at is not null from tenants where id = :tenantId';
  return (await queryValue<boolean>(database, text, { tenantId })) === true;
}

/** Throws RequestError `tenant_suspended` where the tenant of a WABA is suspended. */
export async function refuseSuspended(database: Database, { wabaId }: { wabaId: string }): Promise<void> {
  const suspended = await queryValue<boolean>(
    database,
    'select t.suspended_at is not null from wabas w join tenants t on t.id = w.tenant_id where w.waba_id = :wabaId',
    { wabaId },
  );
  if (suspended) throw new RequestError('tenant_suspended', SUSPENDED);
}
