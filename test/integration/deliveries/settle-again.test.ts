import { expect, test } from 'vitest';
import type { MadeAttempt } from '../../../src/engine/deliveries/attempt/made-attempt.ts';
import { settleAttempts } from '../../../src/engine/deliveries/attempt/settle-attempts.ts';
import { BREAKER, makeEndpointHealth } from '../../../src/engine/deliveries/breaker.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { claimAll } from '../../support/due-shares.ts';
import { ACCOUNT, bodyOf, textMessage } from '../../support/load/upstream-bodies.ts';
import { takeIn } from '../../support/take-in.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { seededWorkerDatabase } from '../../support/test-database.ts';
import { madeAttempt } from '../../unit/deliveries/made-attempts.ts';
import { response } from '../../unit/deliveries/send-results.ts';

const WABA = '900000000000101';

/** Failed attempts of `count` deliveries of one endpoint, under leases that are in force. */
async function failedAttempts(database: Database, count: number): Promise<MadeAttempt[]> {
  const url = 'https://tenant.example/hook';
  const { id } = await addEndpoint(database, WABA, url);
  const messages = Array.from({ length: count }, (_, n) => textMessage(`wamid.AGAIN${n}`, 'hello'));
  await takeIn(database, ...messages.map((message) => bodyOf(ACCOUNT, [message])));
  const { deliveries, token } = await claimAll(database);
  const made: MadeAttempt[] = [];
  for (const { deliveryId, deliveryDay } of deliveries) {
    const attempt = madeAttempt(response(500));
    const endpoint = { ...attempt.endpoint, id, url, wabaId: WABA, retryScheduleMs: [60_000] };
    made.push({
      ...attempt,
      deliveryId,
      deliveryDay,
      token,
      endpoint,
    });
  }
  return made;
}

/** A database that undoes so many transactions at their very end. */
function stumbling(database: Database, failures: number): Database {
  let left = failures;
  const transaction: Database['transaction'] = async (work) =>
    await database.transaction(async (trx) => {
      const result = await work(trx);
      left -= 1;
      if (left >= 0) throw new Error('the connection was lost');
      return result;
    });
  return Object.create(database, { transaction: { value: transaction } });
}

function settlementTools(database: Database) {
  return {
    database,
    health: makeEndpointHealth(),
    worker: 'test',
    onAttempt: () => undefined,
    runLimits: { perEndpoint: 20, overall: 200, mayStart: () => true, takeStart: () => true },
    gate: { isOpen: () => true, check: async () => true },
    onTrouble: () => undefined,
  };
}

async function settleUntilRecorded(database: Database, attempts: readonly MadeAttempt[]) {
  const tools = settlementTools(stumbling(database, 2));
  await expect(settleAttempts(tools, attempts)).rejects.toThrow('lost');
  await expect(settleAttempts(tools, attempts)).rejects.toThrow('lost');
  await settleAttempts(tools, attempts);
  const [endpoint] = await query<{ mode: string }>(database, 'select mode from endpoint_health');
  return {
    counted: tools.health.drain().reduce((sum, { failures }) => sum + failures, 0),
    mode: endpoint?.mode,
  };
}

test('attempts whose recording is tried again count once, so a stumbling database stops no endpoint', async () => {
  const { database } = await seededWorkerDatabase();
  const few = BREAKER.leastFailures - 1;
  const attempts = await failedAttempts(database, few);
  expect(await settleUntilRecorded(database, attempts)).toEqual({ counted: few, mode: 'open' });
});

test('an endpoint that is down is stopped, though the recording that found it was undone', async () => {
  const { database } = await seededWorkerDatabase();
  const enough = BREAKER.leastFailures;
  const attempts = await failedAttempts(database, enough);
  expect(await settleUntilRecorded(database, attempts)).toEqual({ counted: enough, mode: 'probing' });
});

/** A database in which another process takes over all claims after they were read, and before anything is recorded. */
function overtaken(database: Database): Database {
  const transaction: Database['transaction'] = async (work) =>
    await database.transaction(async (trx) => {
      const raw: Database['raw'] = async (text, bindings) => {
        if (text.includes('settle_and_follow'))
          await query(database, 'update delivery_queue set token = gen_random_uuid()');
        return await trx.raw(text, bindings);
      };
      return await work({ ...trx, raw });
    });
  return Object.create(database, { transaction: { value: transaction } });
}

test('attempts whose claims another process takes over while they are judged change nothing', async () => {
  const { database } = await seededWorkerDatabase(2);
  const attempts = await failedAttempts(database, BREAKER.leastFailures);
  const { outcomes, locked } = await settleAttempts(settlementTools(overtaken(database)), attempts);
  expect(outcomes).toEqual(attempts.map(() => null));
  expect(locked).toEqual([]);
  expect(await query(database, 'select mode, has_backlog from endpoint_health')).toEqual([
    { mode: 'open', has_backlog: false },
  ]);
  expect(await query(database, 'select 1 from attempts')).toEqual([]);
  expect(await query(database, `select 1 from delivery_queue where state <> 'claimed'`)).toEqual([]);
});
