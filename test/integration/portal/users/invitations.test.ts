import pino from 'pino';
import { beforeEach, describe, expect, test } from 'vitest';
import { forgetOldInvitations } from '../../../../src/features/users/invitation-store.ts';
import { inviteUser } from '../../../../src/features/users/invitations.ts';
import { SYSTEM } from '../../../../src/platform/audit/audit.ts';
import { execute, query } from '../../../../src/platform/postgres/sql.ts';
import { apiOfFile, startTestApi } from '../../api/api-harness.ts';
import {
  newOffice,
  newUser,
  type Office,
  openBrowser,
  PASSWORD,
  type PortalBrowser,
  postSignedIn,
  signInWith,
} from '../portal-browser.ts';

const api = apiOfFile();
let store: Office;
let other: Office;
let page: string;

beforeEach(async () => {
  store = await newOffice(api);
  other = await newOffice(api, 'Fixture Bazaar');
  page = `${store.path}/users`;
});

let count = 0;
const newEmail = () => {
  count += 1;
  return `guest${count}@store.example`;
};
const invite = async (email: string, role = 'member') => {
  const { tenantId } = store;
  const authority = { actor: SYSTEM, tenantId, userId: null };
  return (await inviteUser({ database: api.database }, authority, { email, role, tenantId })).path;
};
const userRow = async (email: string) =>
  (
    await query<{ id: string; role: string; tenant: string; disabled: boolean }>(
      api.database,
      `select u.id, m.role, m.tenant_id as tenant, m.disabled_at is not null as disabled
         from users u join memberships m on m.user_id = u.id where email = :email`,
      { email },
    )
  )[0];

describe('an invitation', () => {
  test('is shown once by the administrator’s page, and makes the user it says', async () => {
    const email = newEmail();
    const shown = await postSignedIn(store.admin, `${page}/invite`, {
      email: ` ${email.toUpperCase()} `,
      role: 'member',
    });
    const [, path = ''] =
      /https:\/\/heliograph\.example(\/portal\/invitations\/[\w-]{43})/.exec(shown.body) ?? [];
    const list = await store.admin.get(page);
    expect(list.body).toContain(email);
    expect(list.body).not.toContain(path);
    const guest = openBrowser(api.app);
    const form = await guest.get(path);
    expect(form.body).toContain(email);
    expect(form.body).toContain('a member of Fixture Store');
    expect((await guest.post(path, { name: 'Ravi', password: PASSWORD })).headers.location).toBe('/portal');
    expect(await userRow(email)).toMatchObject({ role: 'member', tenant: store.tenantId });
    expect((await guest.get('/portal')).headers.location).toBe(store.path);
    expect((await signInWith(openBrowser(api.app), email.toUpperCase())).statusCode).toBe(303);
  });

  test('works once, also when two use it at the same time', async () => {
    const path = await invite(newEmail());
    const guests = [openBrowser(api.app), openBrowser(api.app)];
    for (const guest of guests) await guest.get(path);
    const answers = await Promise.all(
      guests.map((guest) => guest.post(path, { name: 'A', password: PASSWORD })),
    );
    expect(answers.map(({ statusCode }) => statusCode).sort()).toEqual([303, 404]);
    const late = await openBrowser(api.app).get(path);
    expect(late.statusCode).toBe(404);
  });

  test('that was used, is too old, was replaced or never was has one and the same page', async () => {
    const used = await invite(newEmail());
    const guest = openBrowser(api.app);
    await guest.get(used);
    await guest.post(used, { name: 'A', password: PASSWORD });
    const oldEmail = newEmail();
    const old = await invite(oldEmail);
    await execute(api.database, 'update invitations set expires_at = now() where email = :oldEmail', {
      oldEmail,
    });
    const email = newEmail();
    const replaced = await invite(email);
    const valid = await invite(email);
    const never = `/portal/invitations/${'a'.repeat(43)}`;
    const pages = [];
    for (const path of [used, old, replaced, never, '/portal/invitations/x', '/portal/invitations/%00']) {
      pages.push(await openBrowser(api.app).get(path));
    }
    expect(new Set(pages.map(({ body }) => body)).size).toBe(1);
    expect(pages[0]?.statusCode).toBe(404);
    expect(pages[0]?.body).toContain('This link does not work');
    expect((await openBrowser(api.app).get(valid)).statusCode).toBe(200);
  });

  test('is not used up by looking, nor by a form with a mistake, which keeps the name', async () => {
    const path = await invite(newEmail());
    const guest = openBrowser(api.app);
    await guest.get(path);
    const wrong = await guest.post(path, { name: '<b>Ravi</b>', password: 'short' });
    expect(wrong.statusCode).toBe(422);
    expect(wrong.body).toContain('value="&lt;b&gt;Ravi&lt;/b&gt;"');
    expect(wrong.body).toContain('at least 12 characters');
    expect(wrong.body).not.toContain('value="short"');
    expect((await guest.post(path, { name: 'Ravi', password: PASSWORD })).statusCode).toBe(303);
  });

  test('that is too old is forgotten by the housekeeping, and one that is open is not', async () => {
    const [old, open] = [newEmail(), newEmail()];
    await invite(old);
    const path = await invite(open);
    await execute(
      api.database,
      `update invitations set expires_at = now() - interval '1 second' where email = :old`,
      { old },
    );
    await forgetOldInvitations(api.database, 1_000);
    expect(await query(api.database, 'select from invitations where email = :old', { old })).toEqual([]);
    expect((await openBrowser(api.app).get(path)).statusCode).toBe(200);
  });

  test('is in no line of the log, and neither is the address of a media file', async () => {
    const lines: string[] = [];
    const logger = pino({ level: 'debug' }, { write: (line: string) => lines.push(line) });
    const { app } = await startTestApi(async () => ({ logger }));
    const token = 'a'.repeat(43);
    await openBrowser(app).get(`/portal/invitations/${token}`);
    await openBrowser(app).get(`/received_media/${token}`);
    await openBrowser(app).get('/portal/sign-in');
    expect(lines.join('')).not.toContain(token);
    for (const route of ['/portal/invitations/:token', '/received_media/:token', '/portal/sign-in']) {
      expect(lines.join('')).toContain(`"route":"${route}"`);
    }
  });

  test('can be withdrawn by its tenant only', async () => {
    const email = newEmail();
    const path = await invite(email);
    const [row] = await query<{ id: string }>(
      api.database,
      'select id from invitations where email = :email',
      { email },
    );
    const withdraw = (browser: PortalBrowser, users: string) =>
      postSignedIn(browser, `${users}/invitations/${row?.id}/withdraw`);
    expect((await withdraw(other.admin, `${other.path}/users`)).statusCode).toBe(404);
    expect((await openBrowser(api.app).get(path)).statusCode).toBe(200);
    expect((await withdraw(store.admin, page)).statusCode).toBe(303);
    expect((await openBrowser(api.app).get(path)).statusCode).toBe(404);
  });

  test.each([
    [{ email: 'admin@store.example', role: 'member' }, 'belongs to this tenant already'],
    [{ email: 'no address', role: 'member' }, 'is no e-mail address'],
    [{ email: 'a@b.example\u0000', role: 'member' }, 'is no e-mail address'],
    [{ email: 'x@store.example', role: 'operator' }, 'An operator belongs to no tenant.'],
    [{ email: 'x@store.example', role: 'emperor' }, 'The role must be one of'],
  ])('is refused for %j, beside the field', async ({ email, role }, text) => {
    const fields = { email: email === 'admin@store.example' ? store.adminEmail : email, role };
    const answer = await postSignedIn(store.admin, `${page}/invite`, fields);
    expect(answer.statusCode).toBe(422);
    expect(answer.body).toContain(text);
  });
});

describe('users of a tenant', () => {
  const action = (browser: PortalBrowser, id: string | undefined, name: string, fields = {}) =>
    postSignedIn(browser, `${page}/${id}/${name}`, fields);

  test('change their role and are signed out by it', async () => {
    const { email, browser: member } = await newUser(api, store.tenantId);
    expect((await member.get(page)).statusCode).toBe(403);
    const user = await userRow(email);
    expect((await action(store.admin, user?.id, 'role', { role: 'admin' })).headers.location).toBe(
      `${page}?done=role`,
    );
    expect((await member.get(page)).statusCode).toBe(303);
    await signInWith(member, email);
    expect((await member.get(page)).statusCode).toBe(200);
    expect((await action(store.admin, user?.id, 'role', { role: 'operator' })).statusCode).toBe(422);
  });

  test('are locked out at once and let in again', async () => {
    const { email, browser: member } = await newUser(api, store.tenantId);
    const user = await userRow(email);
    await action(store.admin, user?.id, 'disable');
    expect((await member.get('/portal/account')).statusCode).toBe(303);
    expect((await signInWith(member, email)).statusCode).toBe(422);
    await action(store.admin, user?.id, 'enable');
    expect((await signInWith(member, email)).statusCode).toBe(303);
  });

  test.each([
    ['disable', {}],
    ['role', { role: 'member' }],
  ])('lose with “%s” the links that they made, and the link to a new password', async (name, fields) => {
    const { email, browser: second } = await newUser(api, store.tenantId, 'admin');
    const kept = await invite(newEmail());
    const linkOf = async (shown: Promise<{ body: string }>) =>
      /(\/portal\/invitations\/[\w-]{43})/.exec((await shown).body)?.[1] ?? '';
    const made = await linkOf(postSignedIn(second, `${page}/invite`, { email: newEmail(), role: 'admin' }));
    const user = await userRow(email);
    const password = await linkOf(action(store.admin, user?.id, 'password-link'));
    for (const path of [made, password, kept]) {
      expect((await openBrowser(api.app).get(path)).statusCode).toBe(200);
    }
    await action(store.admin, user?.id, name, fields);
    for (const path of [made, password]) {
      expect((await openBrowser(api.app).get(path)).statusCode).toBe(404);
    }
    expect((await openBrowser(api.app).get(kept)).statusCode).toBe(200);
  });

  test('that cannot be there are not found', async () => {
    for (const id of ['0', 'x', '99999999999999999999', '%00']) {
      expect((await action(store.admin, id, 'disable')).statusCode).toBe(404);
    }
  });

  test('get a link for a new password, which ends their sessions', async () => {
    const { email, browser: member } = await newUser(api, store.tenantId);
    const shown = await action(store.admin, (await userRow(email))?.id, 'password-link');
    const [, path = ''] = /(\/portal\/invitations\/[\w-]{43})/.exec(shown.body) ?? [];
    const elsewhere = openBrowser(api.app);
    expect((await elsewhere.get(path)).body).toContain('Choose a new password');
    const answer = await elsewhere.post(path, { password: 'another long sentence' });
    expect(answer.headers.location).toBe('/portal/sign-in?done=password-changed');
    expect((await elsewhere.get('/portal/account')).statusCode).toBe(303);
    expect((await member.get('/portal/account')).statusCode).toBe(303);
    expect((await signInWith(openBrowser(api.app), email)).statusCode).toBe(422);
    expect((await signInWith(openBrowser(api.app), email, 'another long sentence')).statusCode).toBe(303);
  });

  test('are not those of another tenant, whatever is done to them', async () => {
    const foreign = await userRow(other.adminEmail);
    for (const name of ['disable', 'enable', 'role', 'password-link']) {
      const fields = name === 'role' ? { role: 'member' } : {};
      expect((await action(store.admin, foreign?.id, name, fields)).statusCode).toBe(404);
    }
    expect(await userRow(other.adminEmail)).toEqual(foreign);
    expect((await other.admin.get('/portal/account')).statusCode).toBe(200);
  });

  test('cannot take their own rights', async () => {
    const own = await userRow(store.adminEmail);
    expect((await action(store.admin, own?.id, 'disable')).statusCode).toBe(422);
    expect((await action(store.admin, own?.id, 'role', { role: 'member' })).statusCode).toBe(422);
  });

  test('are changed with an entry in the audit log each', async () => {
    const { id } = await newUser(api, store.tenantId);
    await invite(newEmail());
    await postSignedIn(store.admin, `${page}/invite`, { email: newEmail(), role: 'member' });
    const [open] = await query<{ id: string }>(
      api.database,
      'select id from invitations where tenant_id = :tenantId and accepted_at is null',
      { tenantId: store.tenantId },
    );
    await postSignedIn(store.admin, `${page}/invitations/${open?.id}/withdraw`);
    await action(store.admin, id, 'role', { role: 'admin' });
    for (const name of ['disable', 'enable', 'password-link']) await action(store.admin, id, name);
    const rows = await query<{ action: string }>(
      api.database,
      'select action from audit_log where tenant_id = :tenantId and actor = :adminEmail',
      { tenantId: store.tenantId, adminEmail: store.adminEmail },
    );
    const actions = [
      'invited',
      'role_changed',
      'disabled',
      'enabled',
      'password_link_made',
      'invitation_withdrawn',
    ];
    expect(rows.map((row) => row.action)).toEqual(
      expect.arrayContaining(actions.map((name) => `user.${name}`)),
    );
  });
});
