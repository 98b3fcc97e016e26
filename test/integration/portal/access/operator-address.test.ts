import { describe, expect, test } from 'vitest';
import { noteTokenRefused } from '../../../../src/features/accounts/access-tokens.ts';
import { execute } from '../../../../src/platform/postgres/sql.ts';
import { turn } from '../../alerts/alerts-fixtures.ts';
import { startTestApi, testConfig, WABA } from '../../api/api-harness.ts';
import { addUser, openBrowser, type PortalBrowser, signInWith, tenantOf } from '../portal-browser.ts';

describe('operators’ pages', () => {
  const limited = async (settings: Record<string, string>, isOperatorListener = false) =>
    await startTestApi(async () => ({ config: testConfig(settings), isOperatorListener }));
  const statuses = async (browser: PortalBrowser) =>
    Promise.all(
      ['/portal/operator/health', '/portal/operator/users', `/portal/w/${WABA}`, '/portal/account'].map(
        async (path) => (await browser.get(path)).statusCode,
      ),
    );

  test('answer 404 outside of their networks, to those who are signed in and to others', async () => {
    const stack = await limited({ HELIOGRAPH_PORTAL_OPERATOR_CIDRS: '192.0.2.0/24,2001:db8::/32' });
    const operator = await addUser(stack, { email: 'op@host.example', role: 'operator', tenantId: null });
    expect(await statuses(operator)).toEqual([404, 404, 404, 200]);
    const start = await operator.get('/portal');
    expect(start.body).toContain('Operators work elsewhere');
    expect(start.body).not.toContain('/portal/operator/');
    for (const address of ['192.0.2.7', '::ffff:192.0.2.8', '2001:db8::1']) {
      const inside = openBrowser(stack.app, address);
      await signInWith(inside, 'op@host.example');
      expect([address, await statuses(inside)]).toEqual([address, [200, 200, 200, 200]]);
    }
    expect((await openBrowser(stack.app).get('/portal/operator/health')).statusCode).toBe(404);
    const tenant = {
      email: 'admin@store.example',
      role: 'admin',
      tenantId: await tenantOf(stack.database, WABA),
    };
    const admin = await addUser(stack, tenant);
    expect(await statuses(admin)).toEqual([404, 404, 200, 200]);
  });

  test('and the alerts of all tenants too; of a tenant they are everywhere', async () => {
    const stack = await limited({ HELIOGRAPH_PORTAL_OPERATOR_CIDRS: '192.0.2.0/24' });
    const admin = await addUser(stack, {
      email: 'admin@store.example',
      role: 'admin',
      tenantId: await tenantOf(stack.database, WABA),
    });
    const operator = await addUser(stack, { email: 'op@host.example', role: 'operator', tenantId: null });
    await noteTokenRefused(stack.database, WABA, 'Session has expired');
    await execute(
      stack.database,
      `update wabas set token_refused_at = now() - interval '1 hour' where waba_id = :waba`,
      { waba: WABA },
    );
    await turn(stack.database);
    const paths = ['/portal/alerts', '/portal/alerts?state=all', '/portal/runbooks'];
    const seen = (browser: PortalBrowser) =>
      Promise.all(paths.map(async (path) => (await browser.get(path)).statusCode));
    expect(await seen(operator)).toEqual([404, 404, 404]);
    expect((await operator.get('/portal/account')).body).not.toContain('class="bell"');
    expect((await operator.post('/portal/alerts/read')).statusCode).toBe(404);
    expect((await operator.post('/portal/alerts/mail', { mail: 'off' })).statusCode).toBe(404);
    const inside = openBrowser(stack.app, '192.0.2.7');
    await signInWith(inside, 'op@host.example');
    for (const browser of [inside, admin]) {
      expect(await seen(browser)).toEqual([200, 200, 200]);
      expect((await browser.get('/portal/account')).body).toContain('aria-label="Alerts, 1 new"');
    }
  });

  test.each([
    [false, 404],
    [true, 200],
  ])('with a port of their own, on it: %s', async (isOperatorListener, status) => {
    const stack = await limited({ HELIOGRAPH_PORTAL_OPERATOR_LISTEN: '127.0.0.1:0' }, isOperatorListener);
    const operator = await addUser(stack, { email: 'op@host.example', role: 'operator', tenantId: null });
    expect((await operator.get('/portal/operator/health')).statusCode).toBe(status);
  });
});
