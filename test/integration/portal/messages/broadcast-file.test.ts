import { expect, test } from 'vitest';
import { createBroadcast } from '../../../../src/features/messages/broadcasts/broadcasts.ts';
import { SYSTEM } from '../../../../src/platform/audit/audit.ts';
import { launchChrome } from '../../../support/browser.ts';
import { apiOfFile } from '../../api/api-harness.ts';
import { listen, signedInWindow } from '../chrome.ts';
import { newOffice } from '../portal-browser.ts';

const api = apiOfFile();

test('a file of recipients fills the field in the browser, and one that is no UTF-8 does not', async () => {
  const { wabaId, number, path, adminEmail } = await newOffice(api);
  const template = { name: 'winter_sale', language: { code: 'en_US' } };
  const { id } = await createBroadcast(
    { database: api.database, actor: SYSTEM },
    wabaId,
    { name: 'Sale', phoneNumberId: number, template },
    { requestedBy: 'x', limits: null },
  );
  const origin = await listen(api.app);
  const chrome = await launchChrome();
  try {
    const context = await signedInWindow(chrome, origin, adminEmail);
    const page = await context.newPage();
    await page.goto(`${origin}${path}/broadcasts/${id}/recipients`);
    const input = page.locator('input[type=file]');
    const field = page.getByLabel('Recipients', { exact: true });
    const choose = async (buffer: Buffer) =>
      await input.setInputFiles({ name: 'customers.csv', mimeType: 'text/csv', buffer });
    const problem = () =>
      input.evaluate((one) => (one as unknown as { validationMessage: string }).validationMessage);
    await choose(Buffer.from('to;1\nJos\u00e9', 'latin1'));
    await expect.poll(problem).toContain('not UTF-8');
    expect(await field.inputValue()).toBe('');
    await choose(Buffer.from('\ufeffto;1\r\n+12025550143;Jos\u00e9\r\n'));
    await expect.poll(() => field.inputValue()).toBe('to;1\n+12025550143;Jos\u00e9\n');
    expect(await problem()).toBe('');
    await page.getByRole('button', { name: 'Add the recipients' }).click();
    await page.getByText('1 added. The broadcast has 1 recipient.').waitFor();
  } finally {
    await chrome.close();
  }
});
