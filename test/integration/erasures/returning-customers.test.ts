import { expect, test } from 'vitest';
import { sweepRepeats } from '../../../src/ingest/bodies/repeats.ts';
import { type EraseTools, eraseNextBatch } from '../../../src/ops/erasures/erase.ts';
import { eraseCustomer } from '../../../src/ops/erasures/erasures.ts';
import type { Transaction } from '../../../src/platform/postgres/database.ts';
import { execute } from '../../../src/platform/postgres/sql.ts';
import { tablesHolding } from '../../support/database-scan.ts';
import { storedEvents, takeIn } from '../../support/take-in.ts';
import {
  bodyOf,
  contactOf,
  count,
  type ErasureWorld,
  messageOf,
  NUMBER,
  person,
  startErasureWorld,
  statusOf,
  WABA,
} from './erasure-world.ts';

const ASHA = person('Asha', '5511987650143');

/** Messages to Asha, whose upstream ids are `out-1` and so on. */
async function sendTo({ database }: ErasureWorld, messages: number): Promise<void> {
  await takeIn(database, bodyOf([{ contacts: [contactOf(ASHA)], messages: [messageOf(ASHA, 1)] }]));
  await execute(
    database,
    `insert into messages (waba_id, phone_number_id, conversation_id, direction, upstream_id, type, content)
     select :waba, :number, c.id, 'outbound', name, 'text', '{}'
       from conversations c cross join unnest(:ns::text[]) as n (name)`,
    {
      waba: WABA,
      number: NUMBER,
      ns: Array.from({ length: messages }, (_, n) => ASHA.wamid(`out-${n + 1}`)),
    },
  );
}

const readOf = (n: number) => bodyOf([{ statuses: [statusOf(ASHA, `out-${n}`, 'read')] }]);

/** Erases batch by batch until the next step is the one at `position`, from 0. */
async function eraseUpTo(tools: EraseTools, erasureId: string, position: number): Promise<void> {
  const { database } = tools;
  while ((await count(database, 'erasures', `position >= ${position}`)) === 0)
    await eraseNextBatch(tools, erasureId);
}

test('a status of an own message that comes after the cut-off does not bring the customer back', async () => {
  const world = await startErasureWorld();
  const { database, tools } = world;
  // More than the cut-off remembers by itself.
  await sendTo(world, 2_500);
  const { erasureId } = await eraseCustomer(tools, WABA, { phone: ASHA.waId });
  await eraseUpTo(tools, erasureId, 1);
  await takeIn(database, readOf(2_500));
  await eraseUpTo(tools, erasureId, 2);
  await takeIn(database, readOf(1));
  await world.erase(erasureId);
  expect(await count(database, 'contacts')).toBe(0);
  expect(await storedEvents(database)).toEqual([]);
  await sweepRepeats(tools);
  expect(await tablesHolding(database, [ASHA.waId, ASHA.userId])).toEqual([]);
});

/** Tools whose transactions wait before what `text` is part of. */
function heldAt(tools: EraseTools, text: string): { held: EraseTools; reached: Promise<void>; go(): void } {
  const [reached, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const holding = (trx: Transaction): Transaction => ({
    ...trx,
    raw: async (statement, bindings) => {
      if (statement.includes(text)) {
        reached.resolve();
        await released.promise;
      }
      return await trx.raw(statement, bindings);
    },
  });
  const { database } = tools;
  const held = {
    ...tools,
    database: {
      ...database,
      transaction: (work: (trx: Transaction) => Promise<never>) =>
        database.transaction((trx) => work(holding(trx))),
    },
  };
  return { held, reached: reached.promise, go: released.resolve };
}

test('nor does one that comes while a batch erases its message', async () => {
  const world = await startErasureWorld();
  const { database, tools } = world;
  await sendTo(world, 1);
  await takeIn(database, bodyOf([{ statuses: [statusOf(ASHA, 'out-1', 'sent')] }]));
  const { erasureId } = await eraseCustomer(tools, WABA, { phone: ASHA.waId });
  for (let left = 1; left > 0; ) {
    await eraseNextBatch(tools, erasureId);
    left = await count(database, 'inbox');
  }
  const { held, reached, go } = heldAt(tools, `update erasures set state = 'running'`);
  const erasing = eraseNextBatch(held, erasureId);
  await reached;
  // Its message is remembered as erased since the cut-off: it is passed over, and waits for nothing.
  await takeIn(database, readOf(1));
  go();
  await erasing;
  await world.erase(erasureId);
  expect(await count(database, 'contacts')).toBe(0);
  expect(await storedEvents(database)).toEqual([]);
  await sweepRepeats(tools);
  expect(await tablesHolding(database, [ASHA.waId, ASHA.userId])).toEqual([]);
});
