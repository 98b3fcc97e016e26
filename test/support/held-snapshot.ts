import { onTestFinished } from 'vitest';
import { openDatabase } from '../../src/platform/postgres/database.ts';
import { query } from '../../src/platform/postgres/sql.ts';

/** Holds a snapshot open until the test ends, as a dump or a forgotten transaction does. */
export async function holdSnapshot(url: string): Promise<void> {
  const holder = openDatabase({ url, poolMax: 1, applicationName: 'dump' });
  const isHeld = Promise.withResolvers<void>();
  const ending = Promise.withResolvers<void>();
  const held = holder.transaction(async (trx) => {
    await trx.raw('set transaction isolation level repeatable read');
    await trx.raw('set local idle_in_transaction_session_timeout = 0');
    await query(trx, 'select 1');
    isHeld.resolve();
    await ending.promise;
  });
  onTestFinished(async () => {
    ending.resolve();
    await held;
    await holder.destroy();
  });
  await isHeld.promise;
}
