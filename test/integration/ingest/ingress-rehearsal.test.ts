import { expect, test } from 'vitest';
import { rehearseIngress } from '../../../src/api/inbound/rehearsal.ts';
import { loadConfig } from '../../../src/platform/config/config.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { databaseDigest } from '../../support/database-digest.ts';
import { testDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';

test('the rehearsal of the ingress prepares its statement and leaves nothing behind', async () => {
  const { database, url } = await testDatabase(1);
  const before = await databaseDigest(database);
  await rehearseIngress(loadConfig(testSettings(url)), database);
  expect(await databaseDigest(database)).toEqual(before);
  const prepared = await query(
    database,
    `select 1 from pg_prepared_statements where statement like 'insert into inbox%'`,
  );
  expect(prepared).toHaveLength(1);
});
