import { expect, test } from 'vitest';
import { query } from '../../../src/platform/postgres/sql.ts';
import { bodyOf, cartOrder } from '../../support/load/upstream-bodies.ts';
import { takeIn } from '../../support/take-in.ts';
import { seededDatabase } from '../../support/test-database.ts';

const FIRST = {
  wabaId: '900000000000101',
  phoneNumberId: '800000000000111',
  displayPhoneNumber: '12025550100',
};
const SECOND = { ...FIRST, wabaId: '900000000000202', phoneNumberId: '800000000000221' };

test('orders are numbered per tenant from 1, so that no tenant sees how many the others have', async () => {
  const { database } = await seededDatabase();
  const cart = (id: string) => cartOrder(id, 'catalog');
  await takeIn(
    database,
    bodyOf(FIRST, [cart('wamid.A1'), cart('wamid.A2')]),
    bodyOf(SECOND, [cart('wamid.B1')]),
  );
  await takeIn(database, bodyOf(SECOND, [cart('wamid.B2')]), bodyOf(FIRST, [cart('wamid.A3')]));
  const rows = await query<{ id: string; number: string }>(
    database,
    'select m.upstream_id as id, o.number from orders o join messages m on m.id = o.message_id order by 1',
  );
  expect(rows.map(({ id, number }) => [id, Number(number)])).toEqual([
    ['wamid.A1', 1],
    ['wamid.A2', 2],
    ['wamid.A3', 3],
    ['wamid.B1', 1],
    ['wamid.B2', 2],
  ]);
});
