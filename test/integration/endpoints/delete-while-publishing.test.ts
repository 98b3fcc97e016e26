import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { findSubscribers, publishTo } from '../../../src/engine/deliveries/publish.ts';
import { lockPublishing } from '../../../src/engine/queue/publishing-locks.ts';
import { deleteEndpoint } from '../../../src/features/endpoints/endpoint-modes.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { seededDatabase } from '../../support/test-database.ts';
import { eventually } from '../../support/webhook-receiver.ts';

const WABA = '900000000000101';

const EVENT = {
  wabaId: WABA,
  phoneNumberId: '800000000000111',
  tenantId: '1',
  messageId: null,
  conversationId: null,
  type: 'message' as const,
  eventId: 'wamid.LATE',
  laneKey: 'wamid.LATE',
  dataJson: '{}',
};

test.each([
  ['wrote nothing before', false],
  ['had written something before', true],
])('a deleted endpoint gets nothing from a publisher that saw it and %s', async (_, writesBefore) => {
  const { database } = await seededDatabase();
  const { id } = await addEndpoint(database, WABA, 'https://gone.example/hook');
  let deleting: Promise<unknown> = Promise.resolve();
  await database.transaction(async (trx) => {
    await lockPublishing(trx);
    const subscribers = await findSubscribers(trx, [WABA]);
    expect(subscribers.map((one) => one.id)).toEqual([id]);
    if (writesBefore) await execute(trx, 'select pg_current_xact_id()');
    deleting = deleteEndpoint({ database, actor: SYSTEM }, WABA, id);
    await eventually('the endpoint is gone', async () => {
      return (await query(database, 'select 1 from webhook_endpoints where id = :id', { id })).length === 0;
    });
    // Time for a deletion that does not wait.
    await Promise.race([deleting, sleep(500)]);
    await publishTo(trx, subscribers, [EVENT], { occurredAt: new Date(), claimer: null });
  });
  await deleting;
  expect(await query(database, 'select state from delivery_queue')).toEqual([]);
  expect(await query(database, 'select state from deliveries')).toEqual([{ state: 'dropped' }]);
});
