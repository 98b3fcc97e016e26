import { expect, test } from 'vitest';
import { setBrand } from '../../../src/features/accounts/brands.ts';
import type { NewMail } from '../../../src/features/mail/mails.ts';
import { MAIL_CONTENT } from '../../../src/features/mail/mails.ts';
import { acceptInvitation, invitationBehind, inviteUser } from '../../../src/features/users/invitations.ts';
import { makePasswordLink, setPasswordByLink } from '../../../src/features/users/password-links.ts';
import type { Authority } from '../../../src/features/users/user-authority.ts';
import { findUser } from '../../../src/features/users/user-store.ts';
import { OPERATOR_COMMAND } from '../../../src/platform/audit/audit.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { runAdmin } from '../../support/admin-cli.ts';
import { freshTenant, testSecretBox } from '../../support/test-accounts.ts';
import { testDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { addUser } from '../alerts/alerts-fixtures.ts';

const VISITOR = { ip: '127.0.0.1', userAgent: null, requestId: 'r' };
const mailer = { secretBox: testSecretBox, publicUrl: 'https://gateway.example' };

async function mailsOf(
  database: Database,
): Promise<Pick<NewMail, 'kind' | 'recipient' | 'subject' | 'text' | 'html'>[]> {
  const rows = await query<{ id: string; kind: NewMail['kind']; recipient: string; sealed: string }>(
    database,
    'select id, kind, recipient, content_sealed as sealed from mails order by created_at, id',
  );
  return rows.map(({ id, kind, recipient, sealed }) => ({
    kind,
    recipient,
    ...JSON.parse(testSecretBox.open(sealed, MAIL_CONTENT.place(id))),
  }));
}

const tokenIn = (text: string) =>
  /https:\/\/gateway\.example\/portal\/invitations\/([\w-]{43})/.exec(text)?.[1] ?? '';

test('an invitation goes to its address and is accepted by the link in the e-mail', async () => {
  const { database } = await testDatabase();
  const { tenantId } = await freshTenant(database);
  const maker: Authority = { actor: OPERATOR_COMMAND, tenantId: null, userId: null };
  const given = { email: 'asha@store.example', role: 'admin', tenantId };
  const made = await inviteUser({ database, mailer }, maker, given);
  expect(made.isMailed).toBe(true);
  const [mail] = await mailsOf(database);
  expect(mail).toMatchObject({
    kind: 'invitation',
    recipient: 'asha@store.example',
    subject: 'Invitation to Fixture Store at Heliograph',
    text: expect.stringContaining('operator command invites you to Fixture Store'),
  });
  expect(mail?.html).toContain(`href="https://gateway.example${made.path}"`);
  const invitation = await invitationBehind({ database }, tokenIn(mail?.text ?? ''));
  const person = { name: 'Asha', password: 'correct horse battery' };
  await acceptInvitation({ database }, invitation, person, VISITOR);
  // Without a mailer nothing is sent, and the link is for the one who made it to show.
  const shown = await inviteUser({ database }, maker, { ...given, email: 'b@store.example' });
  expect(shown.isMailed).toBe(false);
  expect(await mailsOf(database)).toHaveLength(1);
});

test('an e-mail has the name of the portal, and one that a program had sent names no platform key', async () => {
  const { database } = await testDatabase();
  const { tenantId } = await freshTenant(database);
  const brand = (name: string, of: string | null) =>
    database.transaction(
      async (trx) => await setBrand({ database: trx, actor: OPERATOR_COMMAND }, of, { name }),
    );
  await brand('Relay', null);
  await brand('Acme Messaging', tenantId);
  const program = { ...OPERATOR_COMMAND, name: 'platform key 3', isPlatformKey: true };
  const maker: Authority = { actor: program, tenantId: null, userId: null };
  const given = { email: 'asha@store.example', role: 'admin', tenantId };
  await inviteUser({ database, mailer }, maker, given);
  await inviteUser({ database, mailer }, maker, {
    email: 'o@gateway.example',
    role: 'operator',
    tenantId: null,
  });
  const mails = await mailsOf(database);
  expect(mails.map(({ subject }) => subject)).toEqual([
    'Invitation to Fixture Store at Acme Messaging',
    'Invitation to Relay',
  ]);
  expect(mails[0]?.text).toContain('Acme Messaging invites you to Fixture Store at Acme Messaging (gateway');
  expect(JSON.stringify(mails)).not.toMatch(/Heliograph|platform key/);
});

test('a password that was set by a mailed link is the owner’s own', async () => {
  const { database } = await testDatabase();
  const { tenantId } = await freshTenant(database);
  const owner = await addUser(database, 'owner@store.example', { tenantId, role: 'member' });
  const other = await addUser(database, 'admin@store.example', { tenantId, role: 'admin' });
  const actor = { name: 'admin@store.example', userId: other.userId, requestId: null, ip: null };
  const maker: Authority = { actor, tenantId, userId: other.userId };
  const use = async (path: string) =>
    await setPasswordByLink(
      { database },
      await invitationBehind({ database }, path.slice('/portal/invitations/'.length)),
      'correct horse battery',
      VISITOR,
    );
  await use((await makePasswordLink({ database }, maker, owner.userId)).path);
  expect((await findUser(database, owner.userId))?.passwordLinkBy).toBe('admin@store.example');
  const made = await makePasswordLink({ database, mailer }, maker, owner.userId);
  const [mail] = await mailsOf(database);
  expect(mail).toMatchObject({ kind: 'password_link', recipient: 'owner@store.example' });
  expect(tokenIn(mail?.text ?? '')).not.toBe('');
  await use(made.path);
  expect((await findUser(database, owner.userId))?.passwordLinkBy).toBeNull();
});

test('the command line sends links too, and prints them where that is asked for', async () => {
  const { database, url } = await testDatabase();
  const settings = {
    ...testSettings(url),
    HELIOGRAPH_SMTP_URL: 'smtp://127.0.0.1:9',
    HELIOGRAPH_MAIL_FROM: 'alerts@gateway.example',
  };
  const invite = ['user', 'invite', '--email', 'asha@store.example', '--role', 'operator'];
  const sent = await runAdmin(settings, invite);
  expect(sent.stdout).toBe('The link is on its way to asha@store.example by e-mail.\n');
  expect(await query(database, 'select recipient from mails')).toEqual([{ recipient: 'asha@store.example' }]);
  const shown = await runAdmin(settings, [...invite, '--show-link']);
  expect(shown.stdout).toContain('/portal/invitations/');
  expect(await query(database, 'select 1 from mails')).toHaveLength(1);
});
