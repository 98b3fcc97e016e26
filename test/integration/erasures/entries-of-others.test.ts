import { expect, test } from 'vitest';
import { eraseCustomer, erasureOf } from '../../../src/ops/erasures/erasures.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { tablesHolding } from '../../support/database-scan.ts';
import { takeIn } from '../../support/take-in.ts';
import { bodyOf, contactOf, messageOf, startErasureWorld, WABA } from './erasure-world.ts';
import { ASHA, BO } from './filled-world.ts';

/** Asha’s message beside Bo’s entry, the only one of the value. */
const mixed = (id: string) => ({
  contacts: [contactOf(BO)],
  messages: [{ ...messageOf(ASHA, id), from_user_id: undefined }],
});
const own = (who: typeof ASHA, id: string) => ({
  contacts: [contactOf(who)],
  messages: [messageOf(who, id)],
});

test.each([
  ['alone', [[mixed('m1')]]],
  ['after both were known', [[own(ASHA, 'a1')], [own(BO, 'b1')], [mixed('m1')]]],
  ['before both are known', [[mixed('m1')], [own(ASHA, 'a1')], [own(BO, 'b1')]]],
  ['beside a part in quarantine', [[mixed('m1'), { messages: [{ type: 'text' }] }]]],
])(
  'a message beside the entry of another person is no reason to take the two for one: %s',
  async (_name, bodies) => {
    const world = await startErasureWorld();
    const { database, tools } = world;
    for (const values of bodies) await takeIn(database, bodyOf(values));
    const ofBo = await query(database, 'select id from messages where content like :text', {
      text: `%${BO.waId}%`,
    });
    const { erasureId } = await eraseCustomer(tools, WABA, { phone: ASHA.waId });
    await world.erase(erasureId);
    expect((await erasureOf(tools, WABA, erasureId)).state).toBe('done');
    expect(await tablesHolding(database, [ASHA.waId, ASHA.userId, ASHA.name])).toEqual([]);
    expect(ofBo).toHaveLength(bodies.length > 1 ? 1 : 0);
    expect(await query(database, 'select id from messages')).toEqual(ofBo);
  },
);
