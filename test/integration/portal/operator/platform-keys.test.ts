import { expect, test } from 'vitest';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { startTestApi } from '../../api/api-harness.ts';
import { newOffice, newUser } from '../portal-browser.ts';

const PAGE = '/portal/operator/platform-keys';

/** The key on the page that shows it once. */
const keyOn = (body: string) => /hp_[0-9a-f]{64}/.exec(body)?.[0] ?? null;

async function ask(api: Awaited<ReturnType<typeof startTestApi>>, platformKey: string | null) {
  const headers = { authorization: `Bearer ${platformKey}` };
  return await api.app.inject({ url: '/api/platform/keys/self', headers });
}

test('an operator makes a platform key, sees it once, uses it, and revokes it at once', async () => {
  const api = await startTestApi();
  const { browser, email } = await newUser(api, null);
  await browser.get(`${PAGE}/new`);
  const made = await browser.post(`${PAGE}/new`, [
    ['_csrf', browser.token()],
    ['name', 'CRM'],
    ['scopes', 'read'],
    ['scopes', 'keys'],
    ['grantableScopes', 'send'],
    ['networks', '127.0.0.0/8'],
    ['validDays', '30'],
  ]);
  const platformKey = keyOn(made.body);
  expect([made.statusCode, platformKey === null]).toEqual([200, false]);
  expect((await ask(api, platformKey)).json()).toMatchObject({
    name: 'CRM',
    scopes: ['read', 'keys'],
    grantableScopes: ['send'],
  });
  const { body: list } = await browser.get(PAGE);
  expect(list).toContain('gives send');
  expect(list).not.toContain(platformKey);

  const [, id] = /platform-keys\/(\d+)\/revoke/.exec(list) ?? [];
  await browser.get(`${PAGE}/${id}/revoke`);
  expect((await browser.post(`${PAGE}/${id}/revoke`)).headers.location).toBe(`${PAGE}?done=revoked`);
  expect((await ask(api, platformKey)).statusCode).toBe(401);
  expect((await browser.get(`${PAGE}/${id}/revoke`)).statusCode).toBe(404);
  const entries = await query(
    api.database,
    `select action, actor from audit_log where target = :target order by id`,
    { target: `platform key ${id}` },
  );
  expect(entries).toEqual([
    { action: 'platform_key.created', actor: email },
    { action: 'platform_key.revoked', actor: email },
  ]);
});

test.each([
  ['no scope', [['name', 'CRM']], 'Name at least one scope'],
  ['no name', [['scopes', 'read']], 'The name of the key'],
  [
    'an unknown scope',
    [
      ['name', 'CRM'],
      ['scopes', 'everything'],
    ],
    'A scope must be one of',
  ],
  [
    'scopes to give without the scope keys',
    [
      ['name', 'CRM'],
      ['scopes', 'read'],
      ['grantableScopes', 'send'],
    ],
    'Grantable scopes are for keys',
  ],
  [
    'no network',
    [
      ['name', 'CRM'],
      ['scopes', 'read'],
      ['networks', 'everywhere'],
    ],
    'everywhere',
  ],
  [
    'a lifetime that is no number',
    [
      ['name', 'CRM'],
      ['scopes', 'read'],
      ['validDays', 'x'],
    ],
    'A time must',
  ],
] as [string, [string, string][], string][])(
  '%s is refused beside the form, which keeps what it had',
  async (_case, fields, said) => {
    const api = await startTestApi();
    const { browser } = await newUser(api, null);
    await browser.get(`${PAGE}/new`);
    const given = new Map([['name', ''], ['networks', ''], ['validDays', ''], ...fields]);
    const answer = await browser.post(`${PAGE}/new`, [['_csrf', browser.token()], ...given]);
    expect([answer.statusCode, keyOn(answer.body)]).toEqual([422, null]);
    expect(answer.body).toContain(said);
  },
);

test('administrators of tenants may not see such a page', async () => {
  const api = await startTestApi();
  const { admin } = await newOffice(api, 'Northwind');
  for (const page of [PAGE, `${PAGE}/new`]) expect((await admin.get(page)).statusCode).toBe(403);
});
