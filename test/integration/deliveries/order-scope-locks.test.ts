import { expect, test } from 'vitest';
import { publishEvents } from '../../../src/engine/deliveries/publish.ts';
import { lockEndpoint } from '../../../src/engine/endpoint/store.ts';
import { lockLanes } from '../../../src/engine/queue/order-scope.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { seededWorkerDatabase } from '../../support/test-database.ts';
import { eventually } from '../../support/webhook-receiver.ts';

const CHANGING = { wabaId: '900000000000101', phoneNumberId: '800000000000111', tenantId: '1' };
const OTHER = { wabaId: '900000000000202', phoneNumberId: '800000000000221', tenantId: '2' };

let published = 0;

async function publish(database: Database, owner: typeof OTHER): Promise<void> {
  const eventId = `e${published++}`;
  const about = { conversationId: null, messageId: null, dataJson: '{}' };
  const event = { ...owner, ...about, type: 'status' as const, eventId, laneKey: eventId };
  await database.transaction((trx) => publishEvents(trx, [event], new Date()));
}

/** Other files have their databases on the same server. */
const waitsForLocks = async (database: Database): Promise<number> => {
  const waiting = `select 1 from pg_locks l join pg_stat_activity a using (pid)
                    where not l.granted and a.datname = current_database()`;
  return (await query(database, waiting)).length;
};

test('the order scope of an endpoint changes: publishing for another tenant waits for no lock', async () => {
  const { database } = await seededWorkerDatabase(12);
  const { id } = await addEndpoint(database, CHANGING.wabaId, 'https://changing.example');
  await addEndpoint(database, OTHER.wabaId, 'https://other.example');
  let blocked = Promise.resolve();
  await database.transaction(async (trx) => {
    expect(await lockEndpoint(trx, CHANGING.wabaId, id)).toBe(true);
    expect(await lockLanes(trx, { wabaId: CHANGING.wabaId, id })).toMatchObject({ count: 0 });
    await execute(trx, `update webhook_endpoints set order_scope = 'endpoint' where id = :id`, { id });
    // The change holds all of its locks until the end of this transaction. Whoever needs one of them hangs.
    for (let n = 0; n < 10; n += 1) await publish(database, OTHER);
    expect(await waitsForLocks(database)).toBe(0);
    // The locks are there: publishing for the same WABA does wait.
    blocked = publish(database, CHANGING);
    await eventually('its own publisher waits', async () => (await waitsForLocks(database)) > 0);
    await publish(database, OTHER);
  });
  await blocked;
  const lanes = await query<{ lane: string }>(
    database,
    'select lane from delivery_queue where endpoint_id = :id',
    { id },
  );
  expect(lanes).toEqual([{ lane: 'endpoint' }]);
});
