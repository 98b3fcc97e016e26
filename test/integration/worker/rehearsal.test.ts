import { expect, test } from 'vitest';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { REHEARSED_CONNECTIONS, rehearse } from '../../../src/worker/rehearsal.ts';
import { databaseDigest } from '../../support/database-digest.ts';
import { testSecretBox } from '../../support/test-accounts.ts';
import { seededWorkerDatabase } from '../../support/test-database.ts';

/** Of what a delivery takes: taken in, queued, recorded. */
const STATEMENTS = [
  'insert into dedup_keys',
  'from publish_events',
  'from ingest_items',
  'settled, promoted',
];

test('the rehearsal prepares what a delivery takes on each connection and leaves nothing behind', async () => {
  const { database } = await seededWorkerDatabase(REHEARSED_CONNECTIONS);
  const before = await databaseDigest(database);
  await rehearse({ database, secretBox: testSecretBox });
  // A message that is rehearsed draws its id: by a turn, and by the one statement, of a known customer and of a new one.
  const [drawn] = await query<{ id: string }>(database, `select nextval('messages_id_seq') as id`);
  expect(Number(drawn?.id)).toBe(1 + 3 * REHEARSED_CONNECTIONS);
  expect(await databaseDigest(database)).toEqual(before);
  for (const statements of await preparedByConnection(database)) {
    for (const wanted of STATEMENTS)
      expect(statements.filter((text) => text.includes(wanted))).toHaveLength(1);
  }
});

/** The prepared statements of each connection: all are held until the last one is there. */
async function preparedByConnection(database: Database): Promise<string[][]> {
  const all = Promise.withResolvers<void>();
  let connected = 0;
  const ask = () =>
    database.transaction(async (trx) => {
      const rows = await query<{ statement: string }>(trx, 'select statement from pg_prepared_statements');
      connected += 1;
      if (connected === REHEARSED_CONNECTIONS) all.resolve();
      await all.promise;
      return rows.map(({ statement }) => statement);
    });
  return await Promise.all(Array.from({ length: REHEARSED_CONNECTIONS }, ask));
}
