import type { Database } from '../../src/platform/postgres/database.ts';
import { type Bindings, query } from '../../src/platform/postgres/sql.ts';

/** Locks rows by `text` in a transaction, as another part of the product or an operator does; `release` ends it. */
export async function holdRows(
  database: Database,
  text: string,
  bindings: Bindings,
): Promise<{ release: () => Promise<void> }> {
  const { promise: ends, resolve: end } = Promise.withResolvers<void>();
  const { promise: isHeld, resolve: held } = Promise.withResolvers<void>();
  const holding = database.transaction(async (trx) => {
    await query(trx, text, bindings);
    held();
    await ends;
  });
  await isHeld;
  return {
    release: async () => {
      end();
      await holding;
    },
  };
}
