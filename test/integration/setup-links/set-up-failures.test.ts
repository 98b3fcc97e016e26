import { describe, expect, test } from 'vitest';
import { findWaba } from '../../../src/features/accounts/accounts.ts';
import { numberPin } from '../../../src/features/accounts/number-pins.ts';
import { execute } from '../../../src/platform/postgres/sql.ts';
import { freshTenant, testSecretBox } from '../../support/test-accounts.ts';
import { refusedWith } from './played-upstream.ts';
import {
  actionsOf,
  authorizedLink,
  begin,
  failureOf,
  linkOf,
  newCustomer,
  newLink,
  run,
  type SetupStack,
  setupStackOfFile,
  tasksOf,
} from './setup-stack.ts';

const stack = setupStackOfFile();

describe('a set-up fails', () => {
  test('a WABA of another tenant: waba_taken, the token is deleted, and nothing else has changed', async () => {
    const owner = await freshTenant(stack.database);
    const thief = await newCustomer(stack);
    // Of several numbers none is asked for: nothing of the account is shown.
    stack.upstream.waba(owner.wabaId, { [owner.number]: {}, [owner.secondNumber]: {} });
    const { id, own } = await authorizedLink(stack, thief.tenantId, [owner.wabaId]);
    expect(await run(stack, id)).toMatchObject({ end: 'failed' });
    expect(await failureOf(stack, id)).toEqual(['failed', 'waba', 'waba_taken', true]);
    const link = await linkOf(stack, id);
    expect(link).toMatchObject({ tokenSealed: null, wabaId: null, phoneNumberId: null, authorizedAt: null });
    expect(link.failure?.message).not.toContain(owner.tenantId);
    expect(await findWaba(stack.database, owner.wabaId)).toMatchObject({
      tenantId: owner.tenantId,
      accessTokenSealed: null,
    });
    expect(await actionsOf(stack, owner.tenantId)).toEqual([]);
    expect((await stack.setup.see(own))?.asks).toEqual({ for: 'start' });
  });

  test('a number of another WABA here: number_taken, and no WABA is added', async () => {
    const owner = await freshTenant(stack.database);
    const thief = await newCustomer(stack);
    stack.upstream.waba(thief.wabaId, { [owner.number]: {} });
    const { id } = await authorizedLink(stack, thief.tenantId, [thief.wabaId]);
    await run(stack, id);
    expect(await failureOf(stack, id)).toEqual(['failed', 'number', 'number_taken', true]);
    expect(await findWaba(stack.database, thief.wabaId)).toBeNull();
  });

  test('permissions that are missing, no WABA, no number', async () => {
    const shop = await newCustomer(stack);
    const cases: [ReturnType<SetupStack['upstream']['consent']>, string[]][] = [
      [
        stack.upstream.consent([shop.wabaId], ['whatsapp_business_management']),
        ['permissions', 'permission_missing'],
      ],
      [stack.upstream.consent([]), ['waba', 'no_waba']],
    ];
    for (const [{ code }, expected] of cases) {
      const { link, token } = await newLink(stack, shop.tenantId);
      await (await begin(stack, token)).finish({ code });
      await run(stack, link.id);
      expect(await failureOf(stack, link.id)).toEqual(['failed', ...expected, true]);
      expect((await linkOf(stack, link.id)).tokenSealed).toBeNull();
    }
    stack.upstream.waba(shop.wabaId, {});
    const { id, own } = await authorizedLink(stack, shop.tenantId, [shop.wabaId]);
    await run(stack, id);
    expect(await failureOf(stack, id)).toEqual(['failed', 'number', 'no_number', true]);
    // The customer adds one, and needs no new consent.
    stack.upstream.waba(shop.wabaId, { [shop.number]: {} });
    await stack.setup.retry(own);
    expect(await run(stack, id)).toMatchObject({ end: 'done' });
  });

  test('(#100) on the first subscription is asked again; when it stays, subscription_failed, and the link resumes there', async () => {
    const shop = await newCustomer(stack);
    const { id, own } = await authorizedLink(stack, shop.tenantId, [shop.wabaId]);
    stack.upstream.failNext('subscribeApp', refusedWith(100));
    expect(await run(stack, id)).toMatchObject({ end: null, summary: expect.stringContaining('#100') });
    stack.upstream.failNext('subscribeApp', ...Array.from({ length: 4 }, () => refusedWith(100)));
    for (const end of [null, null, null, 'failed']) expect((await run(stack, id)).end).toBe(end);
    expect(await failureOf(stack, id)).toEqual(['failed', 'subscribe', 'subscription_failed', true]);
    expect(await tasksOf(stack, id)).toBe(0);
    await stack.setup.retry(own);
    expect(await tasksOf(stack, id)).toBe(1);
    expect(await run(stack, id)).toMatchObject({ end: 'done' });
  });

  test('two-step verification: the page asks for the PIN, three times', async () => {
    const shop = await newCustomer(stack);
    Object.assign(shop.waba.numbers.get(shop.number) ?? {}, { pin: '424242' });
    const { id, own } = await authorizedLink(stack, shop.tenantId, [shop.wabaId]);
    await run(stack, id);
    expect(await failureOf(stack, id)).toEqual(['failed', 'register', 'pin_required', true]);
    expect((await stack.setup.see(own))?.asks).toEqual({ for: 'pin', triesLeft: 3 });
    for (const pin of ['12345', '1234567', 'abcdef', '١٢٣٤٥٦']) {
      await expect(stack.setup.givePin(own, pin)).rejects.toMatchObject({ param: 'pin' });
    }
    await stack.setup.givePin(own, '111111');
    await run(stack, id);
    expect((await stack.setup.see(own))?.asks).toEqual({ for: 'pin', triesLeft: 2 });
    await stack.setup.givePin(own, '424242');
    expect(await run(stack, id)).toMatchObject({ end: 'done' });
    expect(await numberPin({ database: stack.database, secretBox: testSecretBox }, shop.number)).toBe(
      '424242',
    );
  });

  test('a third wrong PIN ends it', async () => {
    const shop = await newCustomer(stack);
    Object.assign(shop.waba.numbers.get(shop.number) ?? {}, { pin: '424242' });
    const { id, own } = await authorizedLink(stack, shop.tenantId, [shop.wabaId]);
    await run(stack, id);
    for (const pin of ['111111', '222222', '333333']) {
      await stack.setup.givePin(own, pin);
      await run(stack, id);
    }
    expect(await failureOf(stack, id)).toEqual(['failed', 'register', 'pin_required', false]);
    await expect(stack.setup.givePin(own, '424242')).rejects.toMatchObject({ code: 'setup_link_elsewhere' });
  });

  test('429 of a registration says until when, and trying earlier is refused', async () => {
    const shop = await newCustomer(stack);
    const { id, own } = await authorizedLink(stack, shop.tenantId, [shop.wabaId]);
    const retryAfterMs = 3_600_000;
    stack.upstream.failNext(
      'registerNumber',
      refusedWith(133_016, { httpStatus: 429, transient: true, retryAfterMs }),
    );
    await run(stack, id);
    expect(await failureOf(stack, id)).toEqual(['failed', 'register', 'registration_rate_limited', true]);
    const { failure } = await linkOf(stack, id);
    const inMs = Date.parse(failure?.retryAt ?? '') - Date.now();
    expect([inMs > retryAfterMs - 60_000, inMs <= retryAfterMs]).toEqual([true, true]);
    expect((await stack.setup.see(own))?.asks).toBeNull();
    await expect(stack.setup.retry(own)).rejects.toMatchObject({ code: 'invalid_value' });
    const past = `update setup_links set failure = jsonb_set(failure, '{retryAt}', '"2026-01-01T00:00:00Z"') where id = :id`;
    await execute(stack.database, past, { id });
    await stack.setup.retry(own);
    expect(await run(stack, id)).toMatchObject({ end: 'done' });
  });

  test('a copy of the app that comes a day too late: the customer begins again', async () => {
    const shop = await newCustomer(stack);
    Object.assign(shop.waba.numbers.get(shop.number) ?? {}, { isInApp: true });
    const { id, own } = await authorizedLink(stack, shop.tenantId, [shop.wabaId]);
    stack.upstream.failNext('syncBusinessApp', refusedWith(2_593_108));
    await run(stack, id);
    expect(await failureOf(stack, id)).toEqual(['failed', 'register', 'coexistence_sync_late', true]);
    expect((await stack.setup.see(own))?.asks).toEqual({ for: 'start' });
  });

  test('a check that stays bad fails there, and goes on when it is good', async () => {
    const shop = await newCustomer(stack);
    const { id, own } = await authorizedLink(stack, shop.tenantId, [shop.wabaId]);
    const good = stack.check.found;
    stack.check.found = { problem: 'No app is subscribed to the WABA.', isSure: true, attention: [] };
    for (let tries = 1; tries < 6; tries += 1) expect((await run(stack, id)).end).toBeNull();
    expect((await run(stack, id)).end).toBe('failed');
    stack.check.found = good;
    expect(await failureOf(stack, id)).toEqual(['failed', 'check', 'upstream_error', true]);
    // From an earlier step too: what is done already is not done again.
    const before = stack.upstream.count('registerNumber');
    await stack.setup.retry(own, 'subscribe');
    expect((await linkOf(stack, id)).state).toBe('authorized');
    expect(await run(stack, id)).toMatchObject({ end: 'done' });
    expect(stack.upstream.count('registerNumber')).toBe(before);
  });
});
