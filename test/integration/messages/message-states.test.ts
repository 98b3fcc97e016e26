import fc from 'fast-check';
import { expect, test } from 'vitest';
import { recordStatuses } from '../../../src/features/messages/statuses.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { ACCOUNT } from '../../support/load/upstream-bodies.ts';
import { stateAfter } from '../../support/state-after.ts';
import { testWorkerDatabase } from '../../support/test-database.ts';

const STATUSES = ['accepted', 'sent', 'delivered', 'read', 'played', 'failed', 'deleted', "it's, one"];

test('the database moves the state of a message as the rule says, whatever comes in whatever batches', async () => {
  const { database } = await testWorkerDatabase();
  let messages = 0;
  const batches = fc.array(fc.array(fc.constantFrom(...STATUSES), { minLength: 1, maxLength: 4 }), {
    minLength: 1,
    maxLength: 3,
  });
  await fc.assert(
    fc.asyncProperty(batches, async (given) => {
      messages += 1;
      const upstreamId = `wamid.${messages}`;
      const whose = { phoneNumberId: ACCOUNT.phoneNumberId, upstreamId };
      const other = { participant: null, at: null, content: '{}' };
      for (const batch of given)
        await database.transaction(
          async (trx) =>
            await recordStatuses(
              trx,
              batch.map((status) => ({ ...whose, ...other, status })),
            ),
        );
      const [row] = await query<{ status: string }>(
        database,
        'select status from message_states where upstream_id = :upstreamId',
        { upstreamId },
      );
      expect(row?.status).toBe(given.flat().reduce<string | null>(stateAfter, null));
    }),
    { numRuns: 60 },
  );
});

test('one member of a group whom a message did not reach does not make it failed', async () => {
  const { database } = await testWorkerDatabase();
  const status = { phoneNumberId: ACCOUNT.phoneNumberId, upstreamId: 'wamid.1', at: null, content: '{}' };
  await database.transaction(
    async (trx) =>
      await recordStatuses(trx, [
        { ...status, participant: '1', status: 'failed' },
        { ...status, participant: '2', status: 'delivered' },
        { ...status, participant: '1', status: 'failed' },
      ]),
  );
  expect(await query(database, 'select status from message_states')).toEqual([{ status: 'delivered' }]);
});
