import { describe, expect, onTestFinished, test } from 'vitest';
import { SHARDS } from '../../../src/engine/inbox/shards.ts';
import { startIntake } from '../../../src/ingest/intake/intake-loop.ts';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import type { DatabaseOptions } from '../../../src/platform/postgres/connection.ts';
import { type Database, openDatabase } from '../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { drainInbox, intakeTools, takeInBatch, takeSmallSteps } from '../../support/take-in.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { seededDatabase } from '../../support/test-database.ts';
import { fixtureBody } from '../../support/upstream-fixtures.ts';
import { eventually } from '../../support/webhook-receiver.ts';

const WABA = '900000000000101';
const OTHER = '900000000000202';
const NUMBER = { [WABA]: '800000000000111', [OTHER]: '800000000000221' };

/** One entry with a status of each of these messages. */
function entryOf(wabaId: keyof typeof NUMBER, ids: readonly string[], status: string, field = 'messages') {
  const statuses = ids.map((id) => ({ id, status, timestamp: '1790000000', recipient_id: '12025550143' }));
  const metadata = { display_phone_number: '12025550100', phone_number_id: NUMBER[wabaId] };
  const value = { messaging_product: 'whatsapp', metadata, statuses };
  return { id: wabaId, changes: [{ field, value }] };
}

function bodyOf(...entry: object[]): Buffer {
  return Buffer.from(JSON.stringify({ object: 'whatsapp_business_account', entry }));
}

const idsOf = (prefix: string, count: number) => Array.from({ length: count }, (_, n) => `${prefix}-${n}`);

async function withEndpoints(count: number, options: Partial<DatabaseOptions> = {}) {
  const { database, url } = await seededDatabase();
  for (let n = 0; n < count; n += 1) await addEndpoint(database, WABA, `https://e${n}.example/hook`);
  await addEndpoint(database, OTHER, 'https://other.example/hook');
  // As the worker opens it.
  const worker = openDatabase({
    url,
    poolMax: 4,
    applicationName: 'intake',
    fixedPlans: true,
    ...options,
  });
  onTestFinished(() => worker.destroy());
  return { database, worker };
}

async function waiting(database: Database, wabaId: string): Promise<number> {
  const where = `select 1 from inbox where state = 'new' and waba_id = :wabaId`;
  return (await query(database, where, { wabaId })).length;
}

/** The statuses that each message had, in the order of its events. */
async function ladders(database: Database): Promise<Map<string, string[]>> {
  const rows = await query<{ id: string; statuses: string[] }>(
    database,
    `select event_id as id, array_agg(convert_from(body, 'UTF8')::jsonb -> 'data' -> 'status' ->> 'status'
                                      order by sequence) as statuses
       from events group by event_id`,
  );
  return new Map(rows.map(({ id, statuses }) => [id, statuses]));
}

describe('a backlog', () => {
  test('of one WABA holds up nobody else, keeps its order and is gone at the end', async () => {
    const { database, worker } = await withEndpoints(3);
    const steps = ['sent', 'delivered', 'read'];
    for (const status of steps) {
      for (let n = 0; n < 8; n += 1)
        await insertBodies(database, [bodyOf(entryOf(WABA, idsOf(`backlog-${n}`, 300), status))]);
    }
    const all = await waiting(database, WABA);
    const intake = startIntake(intakeTools(worker));
    onTestFinished(() => intake.stop());
    await eventually('it began', async () => (await waiting(database, WABA)) < all);
    await insertBodies(database, [fixtureBody('batch_multi_entry_two_wabas')]);
    await eventually('the other WABA was served', () => waiting(database, OTHER), { is: 0 });
    expect(await waiting(database, WABA)).toBeGreaterThan(3);
    await eventually('it is gone', () => waiting(database, WABA), { is: 0 });
    for (const [id, statuses] of await ladders(database))
      if (id.startsWith('backlog')) expect([id, statuses]).toEqual([id, steps]);
    const [heads] = await query<{ heads: number; rows: number }>(
      database,
      `select count(*) filter (where state = 'due')::integer as heads, count(*)::integer as rows
         from delivery_queue q join webhook_endpoints w on w.id = q.endpoint_id where w.waba_id = :waba`,
      { waba: WABA },
    );
    expect(heads).toMatchObject({ heads: 8 * 300 * 3 + 3, rows: 3 * (8 * 300 * 3) + 3 });
  });

  test('whose transactions take longer than a statement may is taken in by smaller ones', async () => {
    const { database, worker } = await withEndpoints(3, { timeouts: { statementMs: 150, answerMs: 35_000 } });
    await database.raw(
      `create function slow() returns trigger language plpgsql as $$ begin
         perform pg_sleep(0.004); return new; end $$;
       create trigger slow before insert on deliveries for each row execute function slow()`,
    );
    const ids = idsOf('slow', 40);
    await insertBodies(database, [bodyOf(entryOf(WABA, ids, 'sent')), bodyOf(entryOf(WABA, ids, 'read'))]);
    const tools = intakeTools(worker);
    let failures = 0;
    while ((await waiting(database, WABA)) > 0) {
      try {
        await takeInBatch(tools);
      } catch (error) {
        expect(error).toMatchObject({ code: '57014' });
        failures += 1;
      }
    }
    expect(failures).toBeGreaterThan(0);
    expect(new Set([...(await ladders(database)).values()].map(String))).toEqual(new Set(['sent,read']));
    expect((await ladders(database)).size).toBe(40);
  });
});

test('a body that is too much for one transaction is taken in in parts; what gave no event is noted and counted once', async () => {
  const { database, worker } = await withEndpoints(1);
  const body = bodyOf(entryOf(WABA, [], 'sent', 'No field'), entryOf(WABA, idsOf('part', 40), 'sent'), {
    ...entryOf(OTHER, idsOf('foreign', 5), 'sent'),
    id: WABA,
  });
  const strange = Buffer.from(body.toString().replaceAll(NUMBER[OTHER] ?? '', '800000000000999'));
  await insertBodies(database, [strange]);
  const tools = intakeTools(worker);
  takeSmallSteps(tools);
  const seen: (string | null)[] = [];
  while ((await waiting(database, WABA)) > 0) {
    await takeInBatch(tools);
    const [row] = await query<{ until: string | null }>(
      database,
      `select partly ->> 'until' as until from inbox`,
    );
    seen.push(row?.until ?? null);
  }
  expect(seen.length).toBeGreaterThan(3);
  expect(seen[0]).toMatch(/^entry\[1\]\.changes\[0\]\.value\.statuses\[\d+\]$/);
  expect(seen.at(-1)).toBeNull();
  expect((await ladders(database)).size).toBe(40);
  const [kept] = await query<{ state: string; reasons: string[] }>(
    database,
    `select state, jsonb_path_query_array(notes, '$[*].reason') as reasons from inbox`,
  );
  expect(kept?.state).toBe('waiting');
  expect(kept?.reasons.toSorted()).toEqual([...Array(5).fill('awaits_phone_number'), 'unknown_field']);
  expect(await query(database, 'select 1 from waiting_bodies')).toHaveLength(1);
  const counts = await query(
    database,
    'select reason, count::integer from quarantine_counts order by reason',
  );
  expect(counts).toEqual([{ reason: 'unknown_field', count: 1 }]);
});

test('a body of several WABAs keeps the order of each, also with one of them far behind', async () => {
  const { database, worker } = await withEndpoints(1);
  const ids = idsOf('mixed', 20);
  await insertBodies(database, [
    bodyOf(entryOf(WABA, ids, 'sent')),
    bodyOf(entryOf(WABA, ids, 'delivered'), entryOf(OTHER, ids, 'sent')),
    bodyOf(entryOf(WABA, ids, 'read')),
    bodyOf(entryOf(OTHER, ids, 'read')),
  ]);
  const tools = intakeTools(worker);
  takeSmallSteps(tools);
  while ((await waiting(database, WABA)) + (await waiting(database, OTHER)) > 0) await takeInBatch(tools);
  const rows = await query<{ waba: string; statuses: string }>(
    database,
    `select distinct waba_id as waba, string_agg(convert_from(body, 'UTF8')::jsonb -> 'data' -> 'status' ->> 'status', ','
                                                 order by sequence) as statuses
       from events group by waba_id, event_id order by 1`,
  );
  expect(rows).toEqual([
    { waba: WABA, statuses: 'sent,delivered,read' },
    { waba: OTHER, statuses: 'sent,read' },
  ]);
});

describe('a worker that loses the intake lock', () => {
  test('reads nothing, also in a backlog', async () => {
    const { database, worker } = await withEndpoints(1);
    await insertBodies(database, [fixtureBody('in_text'), fixtureBody('in_text')]);
    const rows: number[] = [];
    const counting: Database = {
      ...worker,
      transaction: (work) =>
        worker.transaction((trx) => {
          const raw = async (...statement: Parameters<Database['raw']>) => {
            const result = await trx.raw(...statement);
            if (statement[0].includes('from inbox')) rows.push(result.rows.length);
            return result;
          };
          return work({ ...trx, raw });
        }),
    };
    const tools = intakeTools(counting);
    await database.transaction(async (trx) => {
      await execute(trx, 'select pg_advisory_xact_lock(7340001, shard) from generate_series(0, 15) as shard');
      expect(await takeInBatch(tools)).toBe(false);
      for (const shard of SHARDS) tools.memory.of(shard).pace.takeTurns();
      expect(await takeInBatch(tools)).toBe(false);
    });
    expect(rows.length).toBeGreaterThan(1);
    expect(Math.max(...rows)).toBe(0);
    await drainInbox(counting);
    expect(Math.max(...rows)).toBe(2);
  });
});
