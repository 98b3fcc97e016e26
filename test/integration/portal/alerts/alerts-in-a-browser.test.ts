import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { noteTokenRefused } from '../../../../src/features/accounts/access-tokens.ts';
import { execute } from '../../../../src/platform/postgres/sql.ts';
import { launchChrome } from '../../../support/browser.ts';
import { addEndpoint } from '../../../support/test-accounts.ts';
import { turn } from '../../alerts/alerts-fixtures.ts';
import { apiOfFile, testConfig } from '../../api/api-harness.ts';
import { listen, problemsInAllLooks, signedInWindow } from '../chrome.ts';
import { newOffice, newUser, type Office } from '../portal-browser.ts';

const mail = { HELIOGRAPH_SMTP_URL: 'smtp://127.0.0.1:9', HELIOGRAPH_MAIL_FROM: 'alerts@gateway.example' };
let chrome: Browser;
const api = apiOfFile(async () => ({ config: testConfig(mail) }));
let origin: string;
let office: Office;

beforeAll(async () => {
  chrome = await launchChrome();
  origin = await listen(api.app);
});
beforeEach(async () => {
  const { database } = api;
  office = await newOffice(api);
  const { wabaId } = office;
  const { id } = await addEndpoint(database, wabaId, 'https://shop.example/hook');
  await execute(
    database,
    `update endpoint_health set failing_notified = true, mode_reason = 'most attempts fail: 9 of the last 10'
      where endpoint_id = :id`,
    { id },
  );
  await noteTokenRefused(
    database,
    wabaId,
    'Error validating access token: Session has expired on Friday, 20-Nov-26.',
  );
  await execute(
    database,
    `update wabas set token_refused_at = now() - interval '1 hour' where waba_id = :wabaId`,
    { wabaId },
  );
  await execute(database, `insert into inbox (body, state) values ('{}', 'failed')`);
  await turn(database);
  await execute(database, 'delete from inbox');
  await execute(
    database,
    `insert into quarantine_counts values (current_date, 'missing_id', 'messages', :wabaId, 3)`,
    { wabaId },
  );
  await turn(database);
});
afterAll(() => chrome?.close());

test.each([
  ['tenant', async () => office.adminEmail],
  ['operator', async () => (await newUser(api, null)).email],
])('the pages of alerts have no problems in any look, for %s', async (who, emailOf) => {
  const email = await emailOf();
  const window = await signedInWindow(chrome, origin, email);
  const page = await window.newPage();
  for (const path of ['alerts', 'alerts?state=all', 'runbooks']) {
    await page.goto(`${origin}/portal/${path}`);
    expect(await problemsInAllLooks(page, `${path.replace('?state=', '-')}-${who}`)).toEqual([]);
  }
  await window.close();
});

test('without scripts an alert is looked into and marked as read', async () => {
  const window = await signedInWindow(chrome, origin, office.adminEmail, { javaScriptEnabled: false });
  const page = await window.newPage();
  await page.goto(`${origin}/portal/account`);
  await page.getByRole('link', { name: 'Alerts, 3 new' }).click();
  await page
    .getByRole('row', { name: /Endpoint failing/ })
    .getByRole('button', { name: 'Mark as read' })
    .click();
  await page.getByRole('link', { name: 'Alerts, 2 new' }).waitFor();
  await page
    .getByRole('row', { name: /Access token refused/ })
    .getByRole('link', { name: 'Runbook' })
    .click();
  await page.getByRole('heading', { name: 'Access token refused' }).waitFor();
  await page.goBack();
  await page.getByRole('button', { name: 'Mark all as read' }).click();
  await page.getByRole('link', { name: 'Alerts', exact: true }).first().waitFor();
  await window.close();
});
