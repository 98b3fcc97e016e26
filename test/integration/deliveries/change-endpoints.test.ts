import { expect, test } from 'vitest';
import { changeEndpoints, type Settled } from '../../../src/engine/deliveries/attempt/change-endpoints.ts';
import type { SettledOutcome } from '../../../src/engine/deliveries/judge-outcome.ts';
import type { RunRoom } from '../../../src/engine/queue/settle.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { addEndpoint, freshTenant } from '../../support/test-accounts.ts';
import { testDatabase } from '../../support/test-database.ts';
import { madeAttempt } from '../../unit/deliveries/made-attempts.ts';
import { response } from '../../unit/deliveries/send-results.ts';

const FAILED: SettledOutcome = { state: 'failed', attempt: 1, reason: 'HTTP 503' } as SettledOutcome;
const DEFERRED: SettledOutcome = { state: 'deferred', attempt: 1, reason: 'HTTP 410' } as SettledOutcome;

async function twoEndpoints() {
  const { database } = await testDatabase();
  const { wabaId } = await freshTenant(database);
  const urls = ['https://one.example/', 'https://two.example/'];
  const ids: string[] = [];
  for (const url of urls) ids.push((await addEndpoint(database, wabaId, url)).id);
  return { database, ids };
}

function settledAt(id: string, status: number, outcome: SettledOutcome): Settled {
  const made = madeAttempt(response(status));
  return {
    attempt: { ...made, endpoint: { ...made.endpoint, id, retryScheduleMs: [60_000] } },
    outcome,
    batch: [],
  };
}

async function change(database: Database, settled: readonly Settled[], mode: string) {
  const room = (endpointId: string): RunRoom => ({
    endpointId,
    mode,
    freeRuns: 20,
    openRunsOfTenant: 0,
    openRunsOverall: 0,
    probeFailures: 0,
    isInTrouble: true,
  });
  const ids = settled.map(({ attempt }) => attempt.endpoint.id);
  const rooms = new Map(ids.map((id) => [id, room(id)]));
  return await database.transaction(async (trx) => await changeEndpoints(trx, settled, rooms));
}

test('an endpoint that says it is gone is disabled, whatever it answered before that in the same group', async () => {
  const { database, ids } = await twoEndpoints();
  const [id = ''] = ids;
  await change(database, [settledAt(id, 503, DEFERRED), settledAt(id, 410, DEFERRED)], 'down');
  const modes = await query(database, 'select mode from endpoint_health where endpoint_id = :id', { id });
  expect(modes).toEqual([{ mode: 'disabled' }]);
});

test('permanent failures are counted for the endpoints that have some, and for no other of the group', async () => {
  const { database, ids } = await twoEndpoints();
  const [one = '', two = ''] = ids;
  await change(database, [settledAt(one, 503, FAILED), settledAt(two, 503, DEFERRED)], 'open');
  const counts = await query(database, 'select endpoint_id as id, failed from endpoint_failures');
  expect(counts).toEqual([{ id: one, failed: 1 }]);
});
