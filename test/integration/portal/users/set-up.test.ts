import { describe, expect, test } from 'vitest';
import { seedDemoUsers } from '../../../../dev/start.ts';
import { announceSetUp } from '../../../../src/api/portal/users/set-up-page.ts';
import { setUpPath } from '../../../../src/features/users/first-operator.ts';
import { loadConfig } from '../../../../src/platform/config/config.ts';
import { execute, query } from '../../../../src/platform/postgres/sql.ts';
import { startAdmin } from '../../../support/admin-cli.ts';
import { freshTenant } from '../../../support/test-accounts.ts';
import { testSettings } from '../../../support/test-settings.ts';
import { apiOfFile } from '../../api/api-harness.ts';
import { newUser, openBrowser, PASSWORD, signInWith } from '../portal-browser.ts';

const KEYS = [{ id: 'k1', key: Buffer.alloc(32, 1) }];
const PERSON = { email: 'Op@Example.com', name: 'Op', password: PASSWORD };

const api = apiOfFile();

/** Without users, as at first. */
async function emptyPortal() {
  await execute(api.database, 'delete from users');
  const path = (await setUpPath({ database: api.database, encryptionKeys: KEYS })) ?? '';
  return { path, code: path.split('code=')[1] ?? '' };
}

describe('the set-up link', () => {
  test('makes the first operator, who is signed in, and works no more', async () => {
    const { path, code } = await emptyPortal();
    const browser = openBrowser(api.app);
    expect((await browser.get(path)).statusCode).toBe(200);
    expect((await browser.post('/portal/set-up', { ...PERSON, code, password: 'short' })).statusCode).toBe(
      422,
    );
    const answer = await browser.post('/portal/set-up', { ...PERSON, code });
    expect(answer.headers.location).toBe('/portal');
    expect((await browser.get('/portal')).headers.location).toBe('/portal/operator/health');
    expect(await query(api.database, 'select email, is_operator from users')).toEqual([
      { email: 'op@example.com', is_operator: true },
    ]);
    expect(await setUpPath({ database: api.database, encryptionKeys: KEYS })).toBeNull();
    const late = openBrowser(api.app);
    expect((await late.get(path)).statusCode).toBe(404);
    await late.get('/portal/sign-in');
    expect((await late.post('/portal/set-up', { ...PERSON, email: 'b@example.com', code })).statusCode).toBe(
      404,
    );
  });

  test('is needed: no code, a wrong one, and that of other keys open nothing', async () => {
    const { code } = await emptyPortal();
    const other = await setUpPath({
      database: api.database,
      encryptionKeys: [{ id: 'k', key: Buffer.alloc(32, 2) }],
    });
    const wrong = ['', 'x', code.slice(1), `${code}x`, other?.split('code=')[1] ?? '', '%00'];
    for (const one of wrong) {
      const browser = openBrowser(api.app);
      expect((await browser.get(`/portal/set-up?code=${one}`)).statusCode).toBe(404);
      await browser.get('/portal/sign-in');
      expect((await browser.post('/portal/set-up', { ...PERSON, code: one })).statusCode).toBe(404);
    }
    expect(await query(api.database, 'select from users')).toEqual([]);
  });

  test('works for a day, and its time cannot be changed', async () => {
    const { code } = await emptyPortal();
    const tools = { database: api.database, encryptionKeys: KEYS };
    const dayMs = 86_400_000;
    const statusAfter = async (ageMs: number) => {
      const path = (await setUpPath(tools, Date.now() - ageMs)) ?? '';
      return (await openBrowser(api.app).get(path)).statusCode;
    };
    expect(await statusAfter(dayMs - 60_000)).toBe(200);
    expect(await statusAfter(dayMs + 1)).toBe(404);
    const later = `${(Date.now() + 9 * dayMs).toString(36)}.${code.split('.')[1]}`;
    expect((await openBrowser(api.app).get(`/portal/set-up?code=${later}`)).statusCode).toBe(404);
  });

  test('makes one operator when two use it at the same time', async () => {
    const { path, code } = await emptyPortal();
    const browsers = [openBrowser(api.app), openBrowser(api.app), openBrowser(api.app)];
    for (const browser of browsers) await browser.get(path);
    const answers = await Promise.all(
      browsers.map((browser, at) =>
        browser.post('/portal/set-up', { ...PERSON, email: `op${at}@example.com`, code }),
      ),
    );
    expect(answers.map(({ statusCode }) => statusCode).sort()).toEqual([303, 404, 404]);
    expect(await query(api.database, 'select from users')).toHaveLength(1);
  });

  test('is closed by any user, one that was invited by a command too', async () => {
    const { path } = await emptyPortal();
    await newUser(api, (await freshTenant(api.database)).tenantId);
    expect((await openBrowser(api.app).get(path)).statusCode).toBe(404);
  });

  test('is logged by a starting API while there is no user, and not after', async () => {
    const { path, code } = await emptyPortal();
    const settings = testSettings(api.databaseUrl, {
      HELIOGRAPH_ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 1).toString('base64')}`,
    });
    const lines: object[] = [];
    const logger = { info: (line: object) => lines.push(line), warn: (line: object) => lines.push(line) };
    const announce = () => announceSetUp(loadConfig(settings), api.database, logger as never);
    await announce();
    expect(lines).toEqual([
      { url: expect.stringMatching(/^https:\/\/gateway\.example\/portal\/set-up\?code=/) },
    ]);
    const browser = openBrowser(api.app);
    await browser.get(path);
    await browser.post('/portal/set-up', { ...PERSON, code });
    await announce();
    expect(lines).toHaveLength(1);
  });
});

test('the demonstration’s users can sign in with what the terminal says, after every start', async () => {
  const { app, database } = api;
  await execute(database, 'delete from users');
  const { tenantId } = await freshTenant(database);
  const user = { email: 'admin@store.example', name: 'Admin', role: 'admin' as const, tenantId };
  for (const password of ['kept-with-the-data', 'kept-with-the-data', 'of-another-data-directory']) {
    await seedDemoUsers(database, [{ ...user, password }]);
    const answer = await signInWith(openBrowser(app), user.email, password);
    expect(answer.statusCode).toBe(303);
  }
  expect(await query(database, 'select from users')).toHaveLength(1);
});

test('the commands print links, list people and lock them out, but never the last operator', async () => {
  const { admin, json, database } = await startAdmin();
  const { url } = await json('user', 'set-up-link');
  expect(url).toMatch(/^https:\/\/gateway\.example\/portal\/set-up\?code=\w{8}\.[\w-]{32}$/);
  const invited = await json(
    'user',
    'invite',
    '--email',
    'A@store.example',
    '--role',
    'admin',
    '--tenant',
    '1',
  );
  expect(invited).toMatchObject({ email: 'a@store.example', role: 'admin' });
  expect(invited.url).toMatch(/^https:\/\/gateway\.example\/portal\/invitations\/[\w-]{43}$/);
  expect((await admin(['user', 'invite', '--email', 'b@x.example', '--role', 'admin'])).exitCode).toBe(2);
  expect((await admin(['user', 'disable', 'nobody@x.example'])).stderr).toContain('There is no user');
  expect(await json('user', 'list')).toEqual([]);
  const op = { email: 'op@example.com', name: 'Op', role: 'operator' as const, tenantId: null };
  await seedDemoUsers(database, [{ ...op, password: PASSWORD }]);
  expect((await admin(['user', 'set-up-link'])).exitCode).toBe(1);
  expect((await admin(['user', 'disable', 'op@example.com'])).stderr).toContain('the only operator');
  await seedDemoUsers(database, [{ ...op, email: 'op2@example.com', password: PASSWORD }]);
  expect(await json('user', 'disable', 'op@example.com')).toEqual({
    email: 'op@example.com',
    state: 'disabled',
  });
  const listed = await json('user', 'list');
  expect(listed).toHaveLength(2);
  expect(listed.find((user: { email: string }) => user.email === 'op@example.com')).toMatchObject({
    role: 'operator',
    tenantId: null,
    disabledAt: expect.any(String),
  });
});
