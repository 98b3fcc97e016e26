import { expect, test } from 'vitest';
import { eraseFromBodies } from '../../../src/ingest/bodies/erase-bodies.ts';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { cpuMsOf } from '../../support/long-texts.ts';
import { testDatabase } from '../../support/test-database.ts';

const WABA = '900000000000101';
const CUSTOMER = '12025550143';
const MANY = 25_000;

/** Reading the list of them for each of them takes minutes. */
const MAX_CPU_MS = 5_000;

function bodyWith(lists: Record<string, readonly unknown[]>): Buffer {
  const value = { metadata: { phone_number_id: '800000000000111' }, ...lists };
  const entry = [{ id: WABA, changes: [{ field: 'messages', value }] }];
  return Buffer.from(JSON.stringify({ object: 'whatsapp_business_account', entry }));
}

test.each([
  ['messages that are events', (n: number) => ({ from: CUSTOMER, id: `m${n}`, type: 'text' })],
  ['messages without an id', () => ({ from: CUSTOMER })],
])(
  'a customer is taken out of a body with as many %s and contacts of theirs as fit into it',
  async (_, make) => {
    const { database } = await testDatabase();
    const other = { from: '12025550199', id: 'other', type: 'text' };
    const theirs = Array.from({ length: MANY }, (_, n) => make(n));
    const contacts = theirs.map(() => ({ wa_id: CUSTOMER }));
    const body = bodyWith({ contacts, messages: [...theirs, other] });
    expect(body.length).toBeLessThan(3 * 1024 * 1024);
    await insertBodies(database, [body]);
    const [{ day } = { day: '' }] = await query<{ day: string }>(
      database,
      "update inbox set state = 'quarantined' returning received_day as day",
    );
    const untils = new Map([[CUSTOMER, 'infinity']]);
    const who = { wabaId: WABA, untils, isGroup: false, phoneNumberId: null };
    const cpuMs = await cpuMsOf(async () => {
      const erased = await database.transaction((trx) => eraseFromBodies(trx, who, { day, id: '0' }));
      expect(erased).toMatchObject({ changed: 1, deleted: 0 });
    });
    const [row] = await query<{ body: Buffer }>(database, 'select body from inbox');
    expect(String(row?.body)).not.toContain(CUSTOMER);
    expect(String(row?.body)).toContain(JSON.stringify(other));
    expect(cpuMs).toBeLessThan(MAX_CPU_MS);
  },
);
