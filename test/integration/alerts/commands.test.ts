import { expect, onTestFinished, test } from 'vitest';
import { noteTokenRefused } from '../../../src/features/accounts/access-tokens.ts';
import { execute } from '../../../src/platform/postgres/sql.ts';
import { runAdmin } from '../../support/admin-cli.ts';
import { startMailServer } from '../../support/mail-server.ts';
import { freshTenant } from '../../support/test-accounts.ts';
import { databaseOfFile } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { turn } from './alerts-fixtures.ts';

const store = databaseOfFile();

test('admin alerts list shows what is open, and resolve ends it', async () => {
  const { database, url } = store;
  const admin = (...args: string[]) => runAdmin(testSettings(url), ['alerts', ...args]);
  const [{ tenantId, wabaId }, other] = [await freshTenant(database), await freshTenant(database)];
  await noteTokenRefused(database, wabaId, 'Session has expired');
  const hourAgo = `update wabas set token_refused_at = now() - interval '1 hour' where waba_id = :wabaId`;
  await execute(database, hourAgo, { wabaId });
  await turn(database);
  const [alert] = JSON.parse((await admin('list', '--json')).stdout);
  expect(alert).toMatchObject({
    kind: 'access_token_refused',
    wabaId,
    userId: Number(tenantId),
    businessName: 'Fixture Store',
    resolvedAt: null,
  });
  expect((await admin('list')).stdout).toMatch(
    /alr_[0-9a-f]{32} {2}Access token refused {2}Fixture Store {2}The access/,
  );
  expect(JSON.parse((await admin('list', '--waba', other.wabaId, '--json')).stdout)).toEqual([]);
  expect((await admin('resolve', alert.alertId)).stdout).toMatch(/is resolved/);
  expect(await admin('resolve', alert.alertId)).toMatchObject({ exitCode: 1 });
  expect(await admin('resolve', 'nonsense')).toMatchObject({ exitCode: 2 });
  expect((await admin('list')).stdout).toBe('No alert is open.\n');
  const [ended] = JSON.parse((await admin('list', '--all', '--json')).stdout);
  expect(ended).toMatchObject({ alertId: alert.alertId, resolvedBy: 'operator command' });
});

test('admin mail test sends at once, and says why not', async () => {
  const server = await startMailServer();
  onTestFinished(server.close);
  const settings = {
    ...testSettings(store.url),
    HELIOGRAPH_SMTP_URL: server.url,
    HELIOGRAPH_SMTP_TLS_CA_FILE: server.caFile,
    HELIOGRAPH_MAIL_FROM: 'alerts@gateway.example',
  };
  const sent = await runAdmin(settings, ['mail', 'test', 'asha@store.example']);
  expect(sent).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/^The mail server took it: 250/) });
  expect(server.received.map(({ to, isEncrypted }) => [to, isEncrypted])).toEqual([
    [['asha@store.example'], true],
  ]);
  const refused = await runAdmin(settings, ['mail', 'test', 'nobody@store.example']);
  expect(refused).toMatchObject({
    exitCode: 1,
    stderr: expect.stringMatching(/refuses it: .*no such mailbox/),
  });
  expect(await runAdmin(settings, ['mail', 'test', 'nonsense'])).toMatchObject({ exitCode: 2 });
  const without = await runAdmin(testSettings(store.url), ['mail', 'test', 'asha@store.example']);
  expect(without).toMatchObject({
    exitCode: 1,
    stderr: expect.stringMatching(/HELIOGRAPH_SMTP_URL is not set/),
  });
});
