import { expect, test } from 'vitest';
import { execute } from '../../../../src/platform/postgres/sql.ts';
import { apiOfFile } from '../../api/api-harness.ts';
import { authorizedLink, newCustomer, newLink, run, setupStack } from '../../setup-links/setup-stack.ts';
import { newUser } from '../portal-browser.ts';

const PAGE = '/portal/operator/setup-links';

const api = apiOfFile();

/** The rows of the list: link, state, step, WABA, workflow. */
function rowsOf(body: string) {
  const rows = [...body.matchAll(/<tr role="row"[^>]*>(?<row>.*?)<\/tr>/gs)].map(
    (match) => match.groups?.row ?? '',
  );
  const cells = rows.map((row) => [...row.matchAll(/<td[^>]*>(.*?)<\/td>/gs)].map(([, cell = '']) => cell));
  const shown = cells.filter(({ length }) => length > 0);
  return shown.map((row) => row.slice(0, 6).map((cell) => cell.replaceAll(/<[^>]*>/g, '').trim()));
}

test('operators see each link with its state, step and workflow, of a tenant, a WABA or by its id', async () => {
  const stack = setupStack(api.database);
  const [shop, other] = [await newCustomer(stack), await newCustomer(stack)];
  const done = await authorizedLink(stack, shop.tenantId, [shop.wabaId]);
  await run(stack, done.id);
  const failed = await authorizedLink(stack, shop.tenantId, []);
  await run(stack, failed.id);
  const open = (await newLink(stack, other.tenantId)).link.id;
  const { browser } = await newUser(api, null);
  const list = async (query: string) => rowsOf((await browser.get(`${PAGE}${query}`)).body);

  const doneRow = [
    `sl_${done.id}`,
    expect.stringMatching(/^Shop/),
    '✓ Done',
    '–',
    shop.wabaId,
    `setUp/sl_${done.id}`,
  ];
  const failedRow = [`sl_${failed.id}`, doneRow[1], '✕ Failed', 'waba: no_waba', '–', '–'];
  const openRow = [`sl_${open}`, expect.stringMatching(/^Shop/), '• Open', '–', '–', '–'];
  expect(await list('')).toEqual([openRow, failedRow, doneRow]);
  expect(await list(`?tenant=${shop.tenantId}`)).toEqual([failedRow, doneRow]);
  expect(await list(`?wabaId=${shop.wabaId}`)).toEqual([doneRow]);
  expect(await list('?state=open')).toEqual([openRow]);
  expect(await list(`?id=sl_${failed.id}`)).toEqual([failedRow]);
  for (const nothing of ['?id=7', '?id=sl_0', '?tenant=x', '?wabaId=%27']) {
    expect([nothing, await list(nothing)]).toEqual([nothing, []]);
  }
  const { body } = await browser.get(PAGE);
  expect(body).toContain(`workflows/setUp%2Fsl_${done.id}"`);
  expect((await browser.get(`/portal/operator/tenants/${shop.tenantId}`)).body).toContain(
    `href="${PAGE}?tenant=${shop.tenantId}"`,
  );
  expect((await browser.get(`/portal/operator/wabas/${shop.wabaId}`)).body).toContain(
    `href="${PAGE}?wabaId=${shop.wabaId}"`,
  );
  const { browser: admin } = await newUser(api, shop.tenantId, 'admin');
  expect((await admin.get(PAGE)).statusCode).toBe(403);
  await execute(api.database, 'delete from setup_links');
  expect((await browser.get(PAGE)).body).toContain('No set-up links');
});
