import { onTestFinished } from 'vitest';
import type { Database } from '../../src/platform/postgres/database.ts';
import { queryOne } from '../../src/platform/postgres/sql.ts';
import type { UpstreamAccount } from './load/upstream-bodies.ts';
import { addEndpoint, type FreshTenant, freshTenant } from './test-accounts.ts';
import { startReceiver, type WebhookReceiver } from './webhook-receiver.ts';

export type ReceivingTenant = FreshTenant & {
  account: UpstreamAccount;
  receiver: WebhookReceiver;
  endpoint: { id: string; secret: string };
};

/** A tenant's first number as upstream names it. */
export function accountOf({ wabaId, number }: FreshTenant): UpstreamAccount {
  return { wabaId, phoneNumberId: number, displayPhoneNumber: '12025550100' };
}

/** A tenant that no other test knows, with an endpoint at a server that runs until the test ends. */
export async function receivingTenant(database: Database): Promise<ReceivingTenant> {
  const tenant = await freshTenant(database);
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  const endpoint = await addEndpoint(database, tenant.wabaId, `${receiver.url}/hook`);
  return { ...tenant, account: accountOf(tenant), receiver, endpoint };
}

/** How many deliveries of a tenant wait or are under way. */
export async function openDeliveries(database: Database, { wabaId }: { wabaId: string }): Promise<number> {
  const row = await queryOne<{ n: number }>(
    database,
    `select count(*)::integer as n from delivery_queue q join webhook_endpoints e on e.id = q.endpoint_id
      where e.waba_id = :wabaId`,
    { wabaId },
  );
  return row?.n ?? 0;
}
