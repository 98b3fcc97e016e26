import { expect, test } from 'vitest';
import { seedTargets } from '../../../bench/stack/seed.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { testSecretBox } from '../../support/test-accounts.ts';
import { testDatabase } from '../../support/test-database.ts';

test('the benchmark stores its tenants by the code of this checkout', async () => {
  const { database } = await testDatabase();
  const urls = ['http://127.0.0.1:1', 'http://127.0.0.1:2'];
  const targets = await seedTargets({ database, secretBox: testSecretBox }, 1, urls);
  const stored = await query(
    database,
    'select id::text as "endpointId", waba_id as "wabaId", url from webhook_endpoints order by id',
  );
  expect(stored).toEqual(
    targets.map(({ endpointId, wabaId, endpoint }) => ({ endpointId, wabaId, url: urls[endpoint] })),
  );
});
