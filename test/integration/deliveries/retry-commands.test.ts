import { expect, test } from 'vitest';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { publicDeliveryId } from '../../../src/platform/public-ids.ts';
import { startAdmin, WABA } from '../../support/admin-cli.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { publishOne } from './event-fixtures.ts';

test('operators retry and drop deliveries by their ids, and retry all of an endpoint', async () => {
  const { database, admin, json } = await startAdmin();
  const { id: endpointId } = await addEndpoint(database, WABA, 'https://shop.example/hook');
  for (const eventId of ['first', 'second', 'third']) await publishOne(database, eventId);
  await execute(
    database,
    `update delivery_queue set state = 'retrying', attempts = 1, next_attempt_at = now() + interval '1 day'`,
  );
  await execute(database, 'update deliveries set attempts = 1');
  const rows = await query<{ id: string }>(
    database,
    'select delivery_id as id from delivery_queue order by position',
  );
  const [first = '', second = ''] = rows.map(({ id }) => publicDeliveryId(id));
  const states = async () =>
    (await query<{ state: string }>(database, 'select state from delivery_queue order by position')).map(
      ({ state }) => state,
    );
  expect(await json('delivery', 'retry', first)).toEqual({ id: first, endpointId, retried: true });
  expect(await states()).toEqual(['due', 'retrying', 'retrying']);
  expect(await json('delivery', 'drop', second)).toEqual({ id: second, endpointId });
  expect(await states()).toEqual(['due', 'retrying']);
  const all = await admin(['endpoint', 'retry', endpointId]);
  expect(all.stdout).toContain(`1 delivery to endpoint ${endpointId} is attempted now.`);
  expect(await states()).toEqual(['due', 'due']);
  const refused = await admin(['delivery', 'retry', second]);
  expect(refused.exitCode).toBe(1);
  expect(refused.stderr).toContain('Replay it');
  for (const unknown of [`${second}0`, 'dlv_00000000000000000000000000000000']) {
    expect((await admin(['delivery', 'drop', unknown])).stderr).toContain('There is no delivery');
  }
  const audit = await query(
    database,
    `select action, actor from audit_log where action like '%.retried' order by id`,
  );
  expect(audit).toEqual([
    { action: 'delivery.retried', actor: 'operator command' },
    { action: 'endpoint.retried', actor: 'operator command' },
  ]);
});
