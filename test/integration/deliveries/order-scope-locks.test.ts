import { expect, test } from 'vitest';
import { publishEvents } from '../../../src/engine/deliveries/publish.ts';
import { applyOrderScope } from '../../../src/engine/queue/order-scope.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { addEndpoint, seedFixtureAccounts } from '../../support/test-accounts.ts';
import { testWorkerDatabase } from '../../support/test-database.ts';
import { eventually } from '../../support/webhook-receiver.ts';

const CHANGING = { wabaId: '900000000000101', phoneNumberId: '800000000000111', tenantId: '1' };
const OTHER = { wabaId: '900000000000202', phoneNumberId: '800000000000221', tenantId: '2' };
const WAITING = 900;

let published = 0;

async function publish(database: Database, owner: typeof OTHER, count = 1): Promise<void> {
  const events = Array.from({ length: count }, () => {
    const eventId = `e${published++}`;
    const about = { conversationId: null, messageId: null, dataJson: '{}' };
    return { ...owner, ...about, type: 'status' as const, eventId, laneKey: eventId };
  });
  await database.transaction((trx) => publishEvents(trx, events, new Date()));
}

/** Other files have their databases on the same server. */
const waitsForLocks = async (database: Database): Promise<number> => {
  const waiting = `select 1 from pg_locks l join pg_stat_activity a using (pid)
                    where not l.granted and a.datname = current_database()`;
  return (await query(database, waiting)).length;
};

test.each([
  ['open, with nothing waiting', 'open', 0],
  ['paused, with much waiting, which is moved', 'paused', WAITING],
])(
  'the order scope of an endpoint changes (%s): publishing for another tenant waits for no lock',
  async (_, mode, waiting) => {
    const { database } = await testWorkerDatabase(12);
    await seedFixtureAccounts(database);
    const { id } = await addEndpoint(database, CHANGING.wabaId, 'https://changing.example');
    await addEndpoint(database, OTHER.wabaId, 'https://other.example');
    await execute(
      database,
      `update webhook_endpoints set mode = :mode, wanted_order_scope = 'endpoint' where id = :id`,
      { mode, id },
    );
    if (waiting > 0) await publish(database, CHANGING, waiting);
    let blocked = Promise.resolve();
    await database.transaction(async (trx) => {
      expect(await applyOrderScope(trx, id)).toBe(true);
      // The change holds all of its locks until the end of this transaction. Whoever needs one of them hangs.
      for (let n = 0; n < 10; n += 1) await publish(database, OTHER);
      expect(await waitsForLocks(database)).toBe(0);
      // The locks are there: publishing for the same WABA does wait.
      blocked = publish(database, CHANGING);
      await eventually('its own publisher waits', async () => (await waitsForLocks(database)) > 0);
      await publish(database, OTHER);
    });
    await blocked;
    const lanes = await query<{ lane: string; n: number }>(
      database,
      'select lane, count(*)::integer as n from delivery_queue where endpoint_id = :id group by lane',
      { id },
    );
    expect(lanes).toEqual([{ lane: 'endpoint', n: waiting + 1 }]);
  },
);
