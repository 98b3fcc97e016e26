import { expect, test } from 'vitest';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { mutatedBody, mutatedEntry } from '../../support/fuzz/mutations.ts';
import { seededDice } from '../../support/seeded-dice.ts';
import { drainInbox } from '../../support/take-in.ts';
import { seededDatabase } from '../../support/test-database.ts';

/** `npm run fuzz` takes 100,000; the seed makes a failure come again. */
const BODIES = Number(process.env.FUZZ_BODIES ?? 3_000);
const SEED = Number(process.env.FUZZ_SEED ?? 15);
const AT_ONCE = 500;

const WABA = '900000000000101';

const goodEntry = (id: string) => ({
  id: WABA,
  changes: [
    {
      field: 'messages',
      value: {
        messaging_product: 'whatsapp',
        metadata: { display_phone_number: '12025550100', phone_number_id: '800000000000111' },
        contacts: [{ profile: { name: 'Asha' }, wa_id: '12025550143' }],
        messages: [{ from: '12025550143', id, timestamp: '1790000007', type: 'text', text: { body: 'Hi' } }],
      },
    },
  ],
});

const bodyOf = (...entry: unknown[]) =>
  Buffer.from(JSON.stringify({ object: 'whatsapp_business_account', entry }));

test(
  `${BODIES} mutated bodies neither stop intake nor lose a neighbour, in the same body or the next`,
  async () => {
    const { database } = await seededDatabase();
    const dice = seededDice(SEED);
    for (let done = 0; done < BODIES; done += AT_ONCE) {
      const size = Math.min(AT_ONCE, BODIES - done);
      const bodies = Array.from({ length: size }, (_, at) => {
        const [before, after] = [`wamid.before.${done + at}`, `wamid.after.${done + at}`];
        return dice() < 0.5
          ? [bodyOf(goodEntry(before)), mutatedBody(dice), bodyOf(goodEntry(after))]
          : [bodyOf(goodEntry(before), mutatedEntry(dice), goodEntry(after))];
      });
      await insertBodies(database, bodies.flat());
      await drainInbox(database);
      const [lost] = await query<{ ids: string[] | null }>(
        database,
        `select array_agg(id) as ids from (
           select k || n as id from generate_series(cast(:from as integer), cast(:to as integer)) n,
                  unnest(array['wamid.before.', 'wamid.after.']) k
           except select event_id from events) as missing`,
        { from: done, to: done + size - 1 },
      );
      expect(lost?.ids ?? [], `lost with the seed ${SEED}`).toEqual([]);
    }
    const stuck = await query(database, `select id from inbox where state = 'new'`);
    expect(stuck).toEqual([]);
    const [events] = await query<{ twice: number }>(
      database,
      `select cast(count(*) - count(distinct event_id) as integer) as twice from events
        where event_id like 'wamid.before.%' or event_id like 'wamid.after.%'`,
    );
    expect(events?.twice).toBe(0);
  },
  BODIES * 30 + 120_000,
);
