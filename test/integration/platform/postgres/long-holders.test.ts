import { expect, test } from 'vitest';
import { DATABASE_QUESTIONS } from '../../../../src/ops/health/database-questions.ts';
import type { Database } from '../../../../src/platform/postgres/database.ts';
import { oldSnapshots } from '../../../../src/platform/postgres/long-holders.ts';
import { holdSnapshot } from '../../../support/held-snapshot.ts';
import { testDatabase } from '../../../support/test-database.ts';

test('an operator is told who holds an old snapshot, and nothing while there is none', async () => {
  const { database, url } = await testDatabase();
  // Ten minutes have passed since the beginning of each transaction.
  const raw = (text: string, bindings?: object) =>
    database.raw(text, { ...bindings, ...(text.includes(':longerThanMinutes') && { longerThanMinutes: 0 }) });
  const later = { raw } as unknown as Database;
  const told = async () =>
    (await DATABASE_QUESTIONS.server.ask({ database: later })).filter(({ detail }) =>
      detail.includes('snapshot'),
    );
  expect(await told()).toEqual([]);
  await holdSnapshot(url);
  expect(await told()).toEqual([
    expect.objectContaining({
      status: 'degraded',
      detail: expect.stringMatching(/^the session of dump \(process \d+\) holds a snapshot for 0 minutes$/),
      todo: expect.stringContaining('pg_terminate_backend'),
    }),
  ]);
  expect(await oldSnapshots(database, 10)).toEqual([]);
});
