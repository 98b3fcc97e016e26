import { beforeEach, expect, test } from 'vitest';
import { settleLostReturns } from '../../../src/features/setup-links/lost-return.ts';
import { execute } from '../../../src/platform/postgres/sql.ts';
import { takeIn } from '../../support/take-in.ts';
import {
  actionsOf,
  authorizedLink,
  begin,
  failureOf,
  linkOf,
  newCustomer,
  newLink,
  run,
  setupStackOfFile,
  tasksOf,
} from './setup-stack.ts';

/** The customer has finished upstream's dialog, and the way back from there is lost; upstream's webhook arrives. */

const stack = setupStackOfFile();
beforeEach(async () => await execute(stack.database, 'delete from setup_links'));

const BUSINESS = '710000000000001';

/** Upstream's webhook: the entry is of the business that shares the WABA. */
async function shares(wabaId: string, at = Date.now(), event = 'PARTNER_ADDED'): Promise<void> {
  const value = { event, waba_info: { waba_id: wabaId, owner_business_id: BUSINESS } };
  const entry = {
    id: BUSINESS,
    time: Math.floor(at / 1_000),
    changes: [{ field: 'account_update', value }],
  };
  const body = { object: 'whatsapp_business_account', entry: [entry] };
  await takeIn(stack.database, Buffer.from(JSON.stringify(body)));
}

async function minutePasses(): Promise<void> {
  await execute(stack.database, `update setup_links set changed_at = changed_at - interval '61 seconds'`);
  await settleLostReturns(stack.database, 100);
}

async function inDialog(wanted: Parameters<typeof newLink>[2] = {}) {
  const shop = await newCustomer(stack);
  const { link, token } = await newLink(stack, shop.tenantId, wanted);
  return { shop, id: link.id, token, browser: await begin(stack, token) };
}

/** A tenant with a connected number, as an earlier link left it. */
async function connected() {
  const shop = await newCustomer(stack);
  const { id } = await authorizedLink(stack, shop.tenantId, [shop.wabaId]);
  expect(await run(stack, id)).toMatchObject({ end: 'done' });
  await execute(stack.database, 'delete from setup_links');
  return shop;
}

test('the link says that the code is lost, and after a minute it has failed, for the feed; the customer begins again', async () => {
  const { shop, id, token, browser } = await inDialog();
  await shares(shop.wabaId);
  expect(await failureOf(stack, id)).toEqual(['started', 'login', 'code_lost', true]);
  await settleLostReturns(stack.database, 100);
  expect((await linkOf(stack, id)).state).toBe('started');
  expect(await stack.setup.see(browser.own)).toMatchObject({ asks: { for: 'start' }, returnUrl: null });
  await minutePasses();
  expect(await failureOf(stack, id)).toEqual(['failed', 'login', 'code_lost', true]);
  await minutePasses();
  expect((await actionsOf(stack, shop.tenantId)).filter((one) => one === 'setup_link.failed')).toHaveLength(
    1,
  );
  const again = await begin(stack, token);
  expect(await linkOf(stack, id)).toMatchObject({ state: 'started', failure: null });
  await again.finish({ code: stack.upstream.consent([shop.wabaId]).code });
  expect(await run(stack, id)).toMatchObject({ end: 'done' });
});

test.each([0, 1])('a browser that comes back all the same, after %s minutes, goes on', async (minutes) => {
  const { shop, id, browser } = await inDialog();
  const { code } = stack.upstream.consent([shop.wabaId]);
  await shares(shop.wabaId);
  if (minutes > 0) await minutePasses();
  await browser.finish({ code });
  expect(await linkOf(stack, id)).toMatchObject({ state: 'authorized', failure: null });
  await minutePasses();
  expect(await run(stack, id)).toMatchObject({ end: 'done' });
});

test('a number that is connected again goes on with the access token that its WABA has', async () => {
  const { tenantId, wabaId, number } = await connected();
  const { link, token } = await newLink(stack, tenantId, { reconnectPhoneNumberId: number });
  await begin(stack, token);
  const other = await inDialog();
  await shares(wabaId);
  await minutePasses();
  expect(await linkOf(stack, link.id)).toMatchObject({ state: 'authorized', wabaId, phoneNumberId: number });
  expect(await tasksOf(stack, link.id)).toBe(1);
  expect(await run(stack, link.id)).toMatchObject({ end: 'done' });
  expect(await linkOf(stack, other.id)).toMatchObject({ state: 'started', failure: null });
});

test('nothing is said where the WABA may be of two links, or is of another tenant, or came by a link already', async () => {
  const [one, two] = [await inDialog(), await inDialog()];
  await shares(one.shop.wabaId);
  for (const { id } of [one, two])
    expect(await linkOf(stack, id)).toMatchObject({ state: 'started', failure: null });
  const taken = await connected();
  const third = await inDialog();
  await shares(taken.wabaId);
  expect(await linkOf(stack, third.id)).toMatchObject({ state: 'started', failure: null });
  const { tenantId, wabaId } = third.shop;
  await third.browser.finish({ code: stack.upstream.consent([wabaId]).code });
  await run(stack, third.id);
  const next = await newLink(stack, tenantId);
  await begin(stack, next.token);
  // The webhook may be later than all that it tells of.
  await shares(wabaId, Date.now() - 5_000);
  expect(await linkOf(stack, next.link.id)).toMatchObject({ state: 'started', failure: null });
});

test('no other event, no link that was not begun, and none that is over hears of it', async () => {
  const { shop, id } = await inDialog();
  await shares(shop.wabaId, Date.now(), 'PARTNER_REMOVED');
  expect(await linkOf(stack, id)).toMatchObject({ state: 'started', failure: null });
  await execute(stack.database, `update setup_links set state = 'open'`);
  await shares(shop.wabaId, Date.now() - 1_000);
  expect(await linkOf(stack, id)).toMatchObject({ state: 'open', failure: null });
  await execute(
    stack.database,
    `update setup_links set state = 'started', changed_at = now() - interval '61 minutes'`,
  );
  await shares(shop.wabaId, Date.now() - 2_000);
  expect(await linkOf(stack, id)).toMatchObject({ state: 'started', failure: null });
});
