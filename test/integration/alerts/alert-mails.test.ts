import { beforeEach, expect, test } from 'vitest';
import { MAIL_CONTENT } from '../../../src/features/mail/mails.ts';
import { queueAlertMails } from '../../../src/ops/alerts/alert-mails.ts';
import { markAlertsRead } from '../../../src/ops/alerts/alerts.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { addEndpoint, type FreshTenant, freshTenant, testSecretBox } from '../../support/test-accounts.ts';
import { databaseOfFile } from '../../support/test-database.ts';
import { addUser, turn } from './alerts-fixtures.ts';

const mailer = { secretBox: testSecretBox, publicUrl: 'https://gateway.example' };

const store = databaseOfFile(4);
let database: Database;
let tenant: FreshTenant;

beforeEach(async () => {
  ({ database } = store);
  await database.raw(
    `delete from alerts; delete from users; delete from mails; delete from workflow_tasks; delete from inbox;
     delete from webhook_endpoints`,
  );
  tenant = await freshTenant(database);
});

const addAdmin = () => addUser(database, 'a@store.example', { ...tenant, role: 'admin' });

async function fail(count: number): Promise<void> {
  const { wabaId } = tenant;
  for (let index = 0; index < count; index += 1)
    await addEndpoint(database, wabaId, `https://shop.example/${index}`);
  await execute(
    database,
    `update endpoint_health set failing_notified = true, mode_reason = 'it <b>fails</b>'
      where endpoint_id in (select id from webhook_endpoints where waba_id = :wabaId)`,
    { wabaId },
  );
}

/** Makes what was told look as old as that. */
const age = (minutes: number) =>
  execute(database, `update alerts set told_at = told_at - cast(:minutes as float8) * interval '1 minute'`, {
    minutes,
  });
const ageMails = (minutes: number) =>
  execute(
    database,
    `update users set alert_mailed_at = alert_mailed_at - cast(:minutes as float8) * interval '1 minute'`,
    { minutes },
  );

async function mails(): Promise<{ recipient: string; subject: string; text: string; html: string }[]> {
  const rows = await query<{ id: string; recipient: string; sealed: string }>(
    database,
    'select id, recipient, content_sealed as sealed from mails order by created_at, recipient',
  );
  return rows.map(({ id, recipient, sealed }) => ({
    recipient,
    ...JSON.parse(testSecretBox.open(sealed, MAIL_CONTENT.place(id))),
  }));
}

test('100 failing endpoints are one e-mail to each administrator, a minute after the first', async () => {
  await addAdmin();
  await addUser(database, 'member@store.example', { ...tenant, role: 'member' });
  await addUser(database, 'b@bazaar.example', { ...(await freshTenant(database)), role: 'admin' });
  await addUser(database, 'op@host.example', 'operator');
  await fail(100);
  await turn(database, mailer);
  expect(await mails()).toEqual([]);
  await age(2);
  await turn(database, mailer);
  await turn(database, mailer);
  const sent = await mails();
  expect(sent.map(({ recipient }) => recipient)).toEqual(['a@store.example']);
  const [{ subject, text, html } = { subject: '', text: '', html: '' }] = sent;
  expect(subject).toBe('100 alerts: Endpoint failing (100)');
  expect(text.match(/^Endpoint failing · Fixture Store$/gm)).toHaveLength(20);
  expect(text).toContain('80 more alerts');
  expect(text).toMatch(
    new RegExp(`^Look: https://gateway\\.example/portal/w/${tenant.wabaId}/endpoints/\\d+$`, 'm'),
  );
  expect(text).toContain('What to do: https://gateway.example/portal/runbooks#endpoint-failing');
  expect(html).toContain('it &lt;b&gt;fails&lt;/b&gt;');
  expect(
    await query(database, `select workflow_type from workflow_tasks where workflow_type = 'sendMail'`),
  ).toHaveLength(1);
});

test('what comes later waits for its hour, and goes once', async () => {
  await addAdmin();
  await fail(1);
  await turn(database, mailer);
  await age(2);
  await turn(database, mailer);
  await fail(1);
  await turn(database, mailer);
  await age(-2);
  await ageMails(10);
  await age(4);
  await queueAlertMails(database, mailer);
  expect(await mails()).toHaveLength(1);
  await ageMails(55);
  await queueAlertMails(database, mailer);
  await queueAlertMails(database, mailer);
  expect(await mails()).toHaveLength(2);
});

test('it is told again after a day, unless the user has read it or it is over', async () => {
  const admin = await addAdmin();
  await fail(2);
  const day = async () => {
    await age(25 * 60);
    await ageMails(25 * 60);
    await turn(database, mailer);
    await age(2);
    await ageMails(2);
    await turn(database, mailer);
  };
  await turn(database, mailer);
  await age(2);
  await turn(database, mailer);
  await day();
  expect((await mails()).map(({ subject }) => subject)).toEqual([
    '2 alerts: Endpoint failing (2)',
    '2 alerts: Endpoint failing (2)',
  ]);
  await execute(
    database,
    'update endpoint_health set failing_notified = false where endpoint_id = (select min(endpoint_id) from endpoint_health)',
  );
  await day();
  expect((await mails()).at(-1)?.subject).toBe('Alert: Endpoint failing');
  await markAlertsRead(database, admin, null);
  await day();
  expect(await mails()).toHaveLength(3);
});

test('operators are told of the installation; nobody who does not want it, or is disabled', async () => {
  await addUser(database, 'op@host.example', 'operator');
  const quiet = await addUser(database, 'quiet@host.example', 'operator');
  const gone = await addUser(database, 'gone@host.example', 'operator');
  await execute(database, 'update users set alert_mail = false where id = :userId', {
    userId: quiet.userId,
  });
  await execute(database, 'update users set disabled_at = now() where id = :userId', {
    userId: gone.userId,
  });
  await execute(database, `insert into inbox (body, state) values ('{}', 'failed')`);
  await execute(
    database,
    `insert into mails (id, kind, recipient, failed_at, last_error)
     values (gen_random_uuid(), 'invitation', 'nobody@store.example', now(), '550 no such mailbox')`,
  );
  await turn(database, mailer);
  await age(2);
  await turn(database, mailer);
  await execute(database, `delete from mails where kind = 'invitation'`);
  const sent = await mails();
  expect(sent.map(({ recipient, subject }) => [recipient, subject])).toEqual([
    // The refused e-mail is an alert too, but none that an e-mail tells.
    ['op@host.example', 'Alert: Bodies could not be ingested'],
  ]);
  const kinds = await query<{ kind: string }>(database, 'select kind from alerts order by kind');
  expect(kinds.map(({ kind }) => kind)).toEqual(['intake_failed', 'mail_failed']);
});
