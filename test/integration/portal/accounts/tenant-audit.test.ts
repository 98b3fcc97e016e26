import { describe, expect, test } from 'vitest';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { freshTenant } from '../../../support/test-accounts.ts';
import { startTestApi } from '../../api/api-harness.ts';
import { newOffice, newUser } from '../portal-browser.ts';

test('an operator sees on every page of a tenant whose it is, and the way out; its users do not', async () => {
  const api = await startTestApi();
  const { path, admin } = await newOffice(api, 'Northwind');
  const { browser: operator } = await newUser(api, null);
  const banner = 'You act as an operator in <strong>Northwind</strong>';
  for (const page of [path, `${path}/endpoints`, `${path}/keys/new`]) {
    const { body } = await operator.get(page);
    expect(body).toContain(banner);
    expect(body).toContain('<a href="/portal/operator/tenants">Leave the tenant</a>');
    expect((await admin.get(page)).body).not.toContain('operator-banner');
  }
  expect((await operator.get('/portal/operator/tenants')).body).not.toContain('operator-banner');
});

describe('what an operator does to a tenant is recorded with their account', () => {
  test.each([
    ['a new name', 'tenant.renamed', 'rename', () => ({ name: 'Another name' })],
    ['its removal', 'tenant.removed', 'remove', (tenantId: string) => ({ confirm: tenantId })],
  ])('%s', async (_case, action, path, formOf) => {
    const api = await startTestApi();
    const { tenantId } = await freshTenant(api.database, 'Northwind');
    const { id, email, browser } = await newUser(api, null);
    const page = `/portal/operator/tenants/${tenantId}`;
    await browser.get(page);
    const answer = await browser.post(`${page}/${path}`, formOf(tenantId));
    expect(answer.statusCode, answer.body).toBe(303);
    const entries = await query(
      api.database,
      `select actor, actor_user_id as "userId", by_operator as "byOperator" from audit_log where action = :action`,
      { action },
    );
    expect(entries).toEqual([{ actor: email, userId: id, byOperator: true }]);
  });
});
