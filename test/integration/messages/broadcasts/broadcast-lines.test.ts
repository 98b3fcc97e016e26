import { expect, test } from 'vitest';
import { noteAliases } from '../../../../src/features/customers/phone-aliases.ts';
import { addRecipients } from '../../../../src/features/messages/broadcasts/broadcast-lines.ts';
import { createBroadcast } from '../../../../src/features/messages/broadcasts/broadcasts.ts';
import { SYSTEM } from '../../../../src/platform/audit/audit.ts';
import { execute, queryColumn } from '../../../../src/platform/postgres/sql.ts';
import { freshTenant } from '../../../support/test-accounts.ts';
import { databaseOfFile } from '../../../support/test-database.ts';

const store = databaseOfFile();

test('one person is one recipient, however the number is written', async () => {
  const { database } = store;
  const { wabaId, number } = await freshTenant(database);
  const tools = { database, actor: SYSTEM };
  const template = { name: 'winter_sale', language: { code: 'en_US' } };
  const given = { name: 'Sale', phoneNumberId: number, template };
  const { id } = await createBroadcast(tools, wabaId, given, { requestedBy: 'x', limits: null });
  const result = async (...to: string[]) => {
    const lines = to.map((one) => ({ to: one }));
    const added = await addRecipients(tools, { wabaId, broadcastId: id }, lines);
    return added.map((line) => line.result);
  };
  // The 9 of Brazil, the 1 of Mexico, the 9 of Argentina: in one request, and in another.
  expect(await result('+55 11 98765-4321', '551187654321', '5215512345678', '541112345678')).toEqual([
    'added',
    'duplicate',
    'added',
    'added',
  ]);
  expect(await result('551187654321', '+52 55 1234 5678', '+54 9 11 1234-5678')).toEqual(
    Array(3).fill('duplicate'),
  );
  // A landline is somebody else's.
  expect(await result('551123456789', '5511923456789')).toEqual(['added', 'added']);
  // What upstream and its reports have shown.
  await database.transaction((trx) =>
    noteAliases(trx, [{ wabaId, phone: '5930987654321', waId: '593987654321' }]),
  );
  await execute(
    database,
    `insert into contacts (waba_id, wa_id, user_id) values (:wabaId, '593987654321', 'EC.13491208655302741918')`,
    { wabaId },
  );
  expect(await result('5930987654321', 'EC.13491208655302741918', '593987654321')).toEqual([
    'added',
    'duplicate',
    'duplicate',
  ]);
  expect(await result('EC.13491208655302741918')).toEqual(['duplicate']);
  const recipients = 'select recipient from broadcast_recipients where broadcast_id = :id order by id';
  expect(await queryColumn(database, recipients, { id })).toEqual([
    '5511987654321',
    '5215512345678',
    '541112345678',
    '551123456789',
    '5511923456789',
    '5930987654321',
  ]);
});
