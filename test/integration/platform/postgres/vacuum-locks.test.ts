import { expect, test } from 'vitest';
import type { Database } from '../../../../src/platform/postgres/database.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { seededDatabase } from '../../../support/test-database.ts';

const WABA = '900000000000101';
const NUMBER = '800000000000111';
const ROWS = 5_000;

/** Tables whose rows come and go with the traffic, with a statement that adds many of them. */
const COMING_AND_GOING: Readonly<Record<string, string>> = {
  delivery_queue: `(endpoint_id, lane, state, released, delivery_day, delivery_id, event_day, event_uuid)
    select 1, 'lane ' || n, 'due', true, current_date, gen_random_uuid(), current_date, gen_random_uuid()`,
  workflow_tasks: `(workflow_id, workflow_type, waba_id, event_id, argument)
    select 'task/' || n, 'enrichOrder', '${WABA}', 'event', '{}'`,
  history_pieces: `(waba_id, phone_number_id, wa_id, phase, chunk, messages)
    select '${WABA}', '${NUMBER}', '1', 0, n, (select string_agg(gen_random_uuid()::text, '') from generate_series(n, n + 80))`,
  send_pacing: `(phone_number_id, recipient, free_at) select '${NUMBER}', n::text, now()`,
  usage_changes: `(waba_id, day, phone_number_id, category, pricing_type, country)
    select '${WABA}', current_date, '${NUMBER}', 'service', 'regular', 'US'`,
  waiting_bodies: `(waba_id, phone_number_id, received_day, inbox_id) select '${WABA}', '1', current_date, n`,
};

async function sizeOf(database: Database, table: string): Promise<number> {
  const [row] = await query<{ bytes: string }>(
    database,
    'select pg_table_size(cast(:table as regclass)) as bytes',
    { table },
  );
  return Number(row?.bytes);
}

/** Giving pages back to the system takes a lock that keeps all others from the table, readers too. */
test.each(Object.entries(COMING_AND_GOING))(
  'a vacuum of %s whose end is empty gives no page back, for which it would keep others from it',
  async (table, rows) => {
    const { database } = await seededDatabase();
    await database.raw(`insert into ${table} ${rows} from generate_series(1, ${ROWS}) as n`);
    await database.raw(`delete from ${table}`);
    const before = await sizeOf(database, table);
    await database.raw(`vacuum ${table}`);
    const after = await sizeOf(database, table);
    // A vacuum may add maps of free space.
    expect(after).toBeGreaterThanOrEqual(before);
    expect(before).toBeGreaterThan(300_000);
  },
);
