import { expect, test } from 'vitest';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { startTestApi, WABA } from '../../api/api-harness.ts';
import { newUser, tenantOf } from '../portal-browser.ts';

test('a tenant’s new name is recorded with the account of the operator who gave it', async () => {
  const api = await startTestApi();
  const { id, email, browser } = await newUser(api, null);
  const page = `/portal/operator/tenants/${await tenantOf(api.database, WABA)}`;
  await browser.get(page);
  const answer = await browser.post(`${page}/rename`, { name: 'Another name' });
  expect(answer.headers.location).toBe(`${page}?done=renamed`);
  const entries = await query(
    api.database,
    `select actor, actor_user_id as "userId", by_operator as "byOperator" from audit_log where action = 'tenant.renamed'`,
  );
  expect(entries).toEqual([{ actor: email, userId: id, byOperator: true }]);
});
