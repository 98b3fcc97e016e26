import { expect, test, vi } from 'vitest';
import { publishingHorizonMs } from '../../../src/features/delivery-log/events.ts';
import { listConversations } from '../../../src/features/messages/conversations/conversations.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { testDatabase } from '../../support/test-database.ts';

const WABA = '900000000000101';

/** The database, and how many of its statements have read who holds which lock. */
async function countingLockReads() {
  const { database } = await testDatabase();
  let reads = 0;
  const counting: Database = {
    ...database,
    raw: (text, bindings) => {
      if (text.includes('pg_locks')) reads += 1;
      return database.raw(text, bindings);
    },
  };
  return { database: counting, reads: () => reads };
}

const LISTS: [string, (database: Database) => Promise<unknown>][] = [
  ['events', (database) => publishingHorizonMs(database, WABA)],
  [
    'conversations',
    (database) =>
      listConversations(
        database,
        WABA,
        { phoneNumberId: null, customer: null, since: null },
        { order: 'asc', after: null, limit: 10 },
      ),
  ],
];

test.each(LISTS)(
  'pages of %s that are asked for within 50 ms read the locks of the server once',
  async (_, page) => {
    const { database, reads } = await countingLockReads();
    const clock = vi.spyOn(performance, 'now');
    try {
      const startMs = performance.now();
      clock.mockReturnValue(startMs);
      for (let n = 0; n < 5; n += 1) await page(database);
      expect(reads()).toBe(1);
      clock.mockReturnValue(startMs + 51);
      await page(database);
      expect(reads()).toBe(2);
    } finally {
      clock.mockRestore();
    }
  },
);
