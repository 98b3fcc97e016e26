import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { publishEvents } from '../../../src/deliveries/publish.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { execute } from '../../../src/platform/postgres/sql.ts';
import { applyWantedScopes } from '../../../src/queue/order-scope.ts';
import { addEndpoint, seedFixtureAccounts } from '../../support/test-accounts.ts';
import { testWorkerDatabase } from '../../support/test-database.ts';

const CHANGING = { wabaId: '900000000000101', phoneNumberId: '800000000000111', tenantId: '1' };
const OTHER = { wabaId: '900000000000202', phoneNumberId: '800000000000221', tenantId: '2' };
const PHASE_MS = 4_000;

let published = 0;

async function publishOne(database: Database, owner: typeof OTHER): Promise<number> {
  const eventId = `e${published++}`;
  const event = { ...owner, type: 'status' as const, eventId, laneKey: eventId };
  const startMs = performance.now();
  await database.transaction((trx) =>
    publishEvents(trx, [{ ...event, conversationId: null, messageId: null, dataJson: '{}' }], new Date()),
  );
  return performance.now() - startMs;
}

async function during(phaseMs: number, work: () => Promise<unknown>): Promise<void> {
  for (const endMs = performance.now() + phaseMs; performance.now() < endMs; ) await work();
}

/** How long publishing for the other tenant takes, event by event, for a while; the 99th percentile in ms. */
async function p99Ms(database: Database): Promise<number> {
  const tookMs: number[] = [];
  await during(PHASE_MS, async () => {
    tookMs.push(await publishOne(database, OTHER));
    await sleep(2);
  });
  tookMs.sort((a, b) => a - b);
  return tookMs[Math.floor(tookMs.length * 0.99)] ?? 0;
}

test('one tenant’s order scopes change all the time, also of endpoints where much waits: publishing for another takes no longer', {
  timeout: 60_000,
}, async () => {
  const { database } = await testWorkerDatabase(12);
  await seedFixtureAccounts(database);
  const [open, paused] = await Promise.all([
    addEndpoint(database, CHANGING.wabaId, 'https://open.example'),
    addEndpoint(database, CHANGING.wabaId, 'https://paused.example'),
  ]);
  await addEndpoint(database, OTHER.wabaId, 'https://other.example');
  await execute(database, `update webhook_endpoints set mode = 'paused' where id = ?`, [paused.id]);
  for (let n = 0; n < 900; n += 1) await publishOne(database, CHANGING);

  const load = () => during(PHASE_MS, () => publishOne(database, CHANGING));
  const deliver = () =>
    during(PHASE_MS, () =>
      execute(database, 'delete from delivery_queue where endpoint_id <> ?', [paused.id]),
    );
  let changes = 0;
  const change = () =>
    during(PHASE_MS, async () => {
      changes += await execute(
        database,
        `update webhook_endpoints set updated_at = now(), wanted_order_scope = case order_scope when 'event' then 'endpoint' else 'event' end
          where waba_id = ? and wanted_order_scope is null`,
        [CHANGING.wabaId],
      );
      await execute(database, 'delete from delivery_queue where endpoint_id = ? and position > 900 * 2', [
        paused.id,
      ]);
      await applyWantedScopes(database);
    });

  const [calmMs] = await Promise.all([p99Ms(database), load(), deliver()]);
  const [changingMs] = await Promise.all([p99Ms(database), load(), deliver(), change()]);
  const scopes = await database.raw(`select 1 from webhook_endpoints where id = ${open.id} and version > 10`);
  expect({ changes: changes > 20, open: scopes.rows.length }).toEqual({ changes: true, open: 1 });
  expect(changingMs).toBeLessThan(calmMs * 3 + 20);
});
