import { onTestFinished } from 'vitest';
import type { Database } from '../../src/platform/postgres/database.ts';
import { queryOne } from '../../src/platform/postgres/sql.ts';
import type { UpstreamAccount } from './load/upstream-bodies.ts';
import { addEndpoint, type FreshTenant, freshTenant } from './test-accounts.ts';
import { startReceiver, type WebhookReceiver } from './webhook-receiver.ts';

export type ReceivingTenant = FreshTenant & {
  /** The first number, as upstream names it. */
  account: UpstreamAccount;
  receiver: WebhookReceiver;
  endpoint: { id: string; secret: string };
};

/** A tenant that no other test knows, with an endpoint at a server that runs until the test ends. */
export async function receivingTenant(database: Database): Promise<ReceivingTenant> {
  const tenant = await freshTenant(database);
  const { wabaId, number: phoneNumberId } = tenant;
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  const endpoint = await addEndpoint(database, wabaId, `${receiver.url}/hook`);
  const account = { wabaId, phoneNumberId, displayPhoneNumber: '12025550100' };
  return { ...tenant, account, receiver, endpoint };
}

/** How many deliveries of a tenant wait or are under way. */
export async function openDeliveries(database: Database, { wabaId }: { wabaId: string }): Promise<number> {
  const row = await queryOne<{ n: number }>(
    database,
    `select count(*)::integer as n from delivery_queue q join webhook_endpoints e on e.id = q.endpoint_id
      where e.waba_id = ?`,
    [wabaId],
  );
  return row?.n ?? 0;
}
