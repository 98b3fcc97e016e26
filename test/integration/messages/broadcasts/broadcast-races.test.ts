import { expect, test } from 'vitest';
import { insertRecipients } from '../../../../src/features/messages/broadcasts/broadcast-recipients.ts';
import { stepBroadcast } from '../../../../src/features/messages/broadcasts/broadcast-steps.ts';
import {
  addToRecipients,
  broadcastWorkflowId,
  insertBroadcast,
} from '../../../../src/features/messages/broadcasts/broadcast-store.ts';
import { switchBroadcast } from '../../../../src/features/messages/broadcasts/switch-broadcast.ts';
import type { Database } from '../../../../src/platform/postgres/database.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { RequestError } from '../../../../src/platform/request-input.ts';
import { type FreshTenant, freshTenant } from '../../../support/test-accounts.ts';
import { testDatabase } from '../../../support/test-database.ts';
import { WHOLE_PASS } from './broadcast-calls.ts';

const RACES = 1_000;
/** Fewer than may run at once: a start is refused by the cancel alone. */
const SIDE_BY_SIDE = 5;

async function draft(database: Database, { wabaId, number }: FreshTenant, round: number): Promise<string> {
  return await database.transaction(async (trx) => {
    const template = JSON.stringify({ name: 'winter_sale', language: { code: 'en_US' } });
    const row = { wabaId, phoneNumberId: number, name: 'Sale', template, sendAt: null, requestedBy: 'test' };
    const broadcastId = await insertBroadcast(trx, row);
    const recipient = `1202${5_550_000 + round}`;
    await insertRecipients(trx, { wabaId, broadcastId }, [{ recipient, ref: null, parameters: null }]);
    await addToRecipients(trx, broadcastId, 1);
    return broadcastId;
  });
}

type Raced = { broadcastId: string; isStarted: boolean };

/** Starts and cancels a draft at once, by turns the one and the other first. */
async function raced(database: Database, tenant: FreshTenant, round: number): Promise<Raced> {
  const broadcastId = await draft(database, tenant, round);
  const ids = { wabaId: tenant.wabaId, broadcastId };
  const outcomeOf = (verb: 'start' | 'cancel') =>
    switchBroadcast(database, ids, verb).then(
      () => 'done',
      (error: unknown) => (error instanceof RequestError ? error.code : Promise.reject(error)),
    );
  const verbs = round % 2 === 0 ? (['start', 'cancel'] as const) : (['cancel', 'start'] as const);
  const outcomes = new Map(
    await Promise.all(verbs.map(async (verb) => [verb, await outcomeOf(verb)] as const)),
  );
  expect([broadcastId, outcomes.get('cancel')]).toEqual([broadcastId, 'done']);
  expect(['done', 'broadcast_finished']).toContain(outcomes.get('start'));
  const send = () => Promise.reject(new Error('nobody may get a message'));
  await stepBroadcast({ database, sending: { messagesPerSecond: null }, send }, ids, WHOLE_PASS);
  return { broadcastId, isStarted: outcomes.get('start') === 'done' };
}

test('start and cancel raced 1,000 times: one wins, and nobody gets a message behind a cancel', async () => {
  const { database } = await testDatabase(2 * SIDE_BY_SIDE);
  const tenant = await freshTenant(database);
  const races: Raced[] = [];
  for (let round = 0; round < RACES; round += SIDE_BY_SIDE) {
    const rounds = Array.from({ length: SIDE_BY_SIDE }, (_, n) => raced(database, tenant, round + n));
    races.push(...(await Promise.all(rounds)));
  }
  const rows = await query<{ id: string; state: string; started: boolean; task: boolean; recipient: string }>(
    database,
    `select b.id, b.state, b.started_at is not null as started, r.state as recipient,
            exists (select from workflow_tasks t where t.workflow_id = '${broadcastWorkflowId('')}' || b.id) as task
       from broadcasts b join broadcast_recipients r on r.broadcast_id = b.id where b.waba_id = :wabaId`,
    { wabaId: tenant.wabaId },
  );
  const of = new Map(rows.map(({ id, ...row }) => [id, row]));
  const wrong = races.filter(({ broadcastId, isStarted }) => {
    const row = of.get(broadcastId);
    // Whoever was first has done its whole work: a start that won leaves the workflow that ends it.
    const isWhole = row?.started === isStarted && row.task === isStarted;
    return row?.state !== 'cancelled' || row.recipient !== 'pending' || !isWhole;
  });
  expect([races.length, wrong]).toEqual([RACES, []]);
  // Both orders came up.
  const started = races.filter(({ isStarted }) => isStarted).length;
  expect([started > 0, started < RACES]).toEqual([true, true]);
});
