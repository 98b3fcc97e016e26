import type { Database, Transaction } from './database.ts';

class Undone extends Error {}

/** Runs `work` in a transaction that is rolled back whatever comes of it; rejects as `work` does. */
export async function undone(
  database: Database,
  work: (trx: Transaction) => Promise<unknown>,
): Promise<void> {
  try {
    await database.transaction(async (trx) => {
      await work(trx);
      throw new Undone();
    });
  } catch (error) {
    if (!(error instanceof Undone)) throw error;
  }
}
