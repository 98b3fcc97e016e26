import { expect, test } from 'vitest';
import type { Database, Transaction } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { claimAll } from '../../support/due-shares.ts';
import { addEndpoints, queueEach } from '../../support/many-endpoints.ts';
import { settleAndFollow, settleDelivered } from '../../support/settle-rows.ts';
import { seededWorkerDatabase } from '../../support/test-database.ts';

const WABA = '900000000000101';

type Claims = Awaited<ReturnType<typeof claimAll>>;

/** How the commit of a transaction is to wait for the disk in which the heads of these lanes are settled. */
async function commitOf(
  lanes: readonly string[],
  settle: (trx: Transaction, claims: Claims) => Promise<unknown>,
): Promise<string | undefined> {
  const { database } = await seededWorkerDatabase(1);
  const urls = ['https://e.example'];
  const [endpointId = ''] = await addEndpoints(database, WABA, { urls, ratePerSecond: null });
  const endpointIds = lanes.map(() => endpointId);
  await queueEach(database, WABA, endpointIds, (n) => lanes[n] ?? '');
  const claims = await claimAll(database, { limit: 10 });
  return await database.transaction(async (trx) => {
    await settle(trx, claims);
    return await synchronousCommit(trx);
  });
}

async function synchronousCommit(database: Database): Promise<string | undefined> {
  const [row] = await query<{ synchronous_commit: string }>(database, 'show synchronous_commit');
  return row?.synchronous_commit;
}

const settleAlone = (trx: Transaction, { deliveries, token }: Claims) =>
  settleDelivered(
    trx,
    deliveries.map(({ deliveryId }) => ({ deliveryId, token })),
  );

test('a success that nothing waits behind does not wait for the disk: its loss repeats a webhook, with its id', async () => {
  expect(await commitOf(['a', 'b'], settleAlone)).toBe('off');
});

test('what lets the next of a lane go is on disk first, else a crash could turn their order round', async () => {
  expect(await commitOf(['a', 'b', 'b'], settleAlone)).toBe('on');
  const follow = (trx: Transaction, { deliveries, token }: Claims) => settleAndFollow(trx, deliveries, token);
  expect(await commitOf(['a', 'b', 'b'], follow)).toBe('on');
});
