import { expect, onTestFinished, test } from 'vitest';
import { startProbing } from '../../../src/engine/endpoint/endpoint-health.ts';
import { parkHeads, unparkHeads } from '../../../src/engine/queue/park.ts';
import { enableEndpoint, holdEndpoint } from '../../../src/features/endpoints/endpoint-modes.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { migrate } from '../../../src/platform/postgres/migrate.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { earlierDatabase, switchOff } from '../../support/earlier-database.ts';
import { holdRows } from '../../support/held-rows.ts';
import { queueEach } from '../../support/many-endpoints.ts';
import { addEndpoint, freshTenant } from '../../support/test-accounts.ts';
import { testWorkerDatabase } from '../../support/test-database.ts';

const COLUMNS = `mode, mode_reason, mode_changed_at, failing_since, recovered_at, next_probe_at, probe_failures, failing_notified,
  has_parked, has_backlog, backlog_due_at, backlog_retried_at`;

const healthOf = (database: Database) =>
  query(database, `select endpoint_id as id, ${COLUMNS} from endpoint_health order by endpoint_id`);
const formerOf = (database: Database) =>
  query(database, `select id, ${COLUMNS} from webhook_endpoints order by id`);

async function oneEndpoint() {
  const { database } = await testWorkerDatabase();
  const { wabaId } = await freshTenant(database);
  const { id } = await addEndpoint(database, wabaId, 'https://tenant.example/hook');
  return { database, wabaId, id };
}

test('an upgrade carries the state of every endpoint over', async () => {
  const urls = ['https://open.example', 'https://paused.example', 'https://probing.example'];
  const { database, endpoints } = await earlierDatabase(urls);
  const [, paused = '', probing = ''] = endpoints;
  await switchOff(database, paused, 'paused');
  await switchOff(database, probing, 'probing');
  const before = await formerOf(database);
  await migrate(database);
  expect(await healthOf(database)).toEqual(before);
  expect(before).toMatchObject([
    { mode: 'open' },
    { mode: 'paused' },
    { mode: 'probing', has_backlog: true },
  ]);
});

test('what a worker of the release before notes is carried over, and nothing that it did not change', async () => {
  const { database, id } = await oneEndpoint();
  await execute(
    database,
    `update endpoint_health set has_backlog = true, recovered_at = now() - interval '1 hour', mode_reason = 'ours'`,
  );
  const noted = `mode = 'probing', failing_since = now(), next_probe_at = now() + interval '5 seconds', probe_failures = 2`;
  await execute(database, `update webhook_endpoints set ${noted} where id = :id`, { id });
  const isSame = `h.mode = w.mode and h.failing_since = w.failing_since and h.next_probe_at = w.next_probe_at`;
  expect(
    await query(
      database,
      `select h.mode, h.probe_failures as failures, h.mode_reason as reason, h.has_backlog and h.recovered_at < now() as "isKept"
         from endpoint_health h join webhook_endpoints w on w.id = h.endpoint_id and ${isSame}`,
    ),
  ).toEqual([{ mode: 'probing', failures: 2, reason: 'ours', isKept: true }]);
});

test('workers of the release before see every change of mode, and the breaker waits for no settings that somebody holds', async () => {
  const { database, wabaId, id } = await oneEndpoint();
  const tools = { database, actor: SYSTEM };
  const probe = () =>
    database.transaction((trx) => startProbing(trx, id, { probeAfterMs: 1_000, reason: 'it fails' }));
  const both = async () => [await healthOf(database), await formerOf(database)];
  for (const change of [
    () => holdEndpoint(tools, wabaId, { id, mode: 'paused', reason: 'moving' }),
    () => enableEndpoint(tools, wabaId, { id, waiting: null, by: 'a test' }),
    probe,
    () => enableEndpoint(tools, wabaId, { id, waiting: null, by: 'a test' }),
  ]) {
    await change();
    const [health, former] = await both();
    expect(former).toEqual(health);
  }
  const { release } = await holdRows(database, 'select 1 from webhook_endpoints where id = :id for update', {
    id,
  });
  onTestFinished(release);
  expect(await probe()).toBe(true);
  expect(await both()).toMatchObject([[{ mode: 'probing' }], [{ mode: 'open' }]]);
  await release();
});

test('workers of the release before find the mark of parked deliveries, and none is left when they return', async () => {
  const { database, wabaId, id } = await oneEndpoint();
  await queueEach(database, wabaId, [id, id], (n) => `lane ${n}`);
  const off = `update endpoint_health set mode = 'paused', mode_changed_at = now() - interval '1 hour'`;
  await execute(database, off);
  expect(await parkHeads(database, { endpointIds: [id], closedSeconds: 60, limit: 10 })).toMatchObject({
    parked: 2,
  });
  expect(await formerOf(database)).toMatchObject([{ has_parked: true }]);
  await execute(database, `update endpoint_health set mode = 'open'`);
  expect(await unparkHeads(database, 10)).toBe(2);
  expect(await formerOf(database)).toMatchObject([{ has_parked: false }]);
  expect(await healthOf(database)).toMatchObject([{ has_parked: false }]);
});
