import { describe, expect, test } from 'vitest';
import { openAccessToken } from '../../../src/features/accounts/access-tokens.ts';
import { findWaba, listPhoneNumbers } from '../../../src/features/accounts/accounts.ts';
import { numberPin } from '../../../src/features/accounts/number-pins.ts';
import { forgetOldSetupLinks } from '../../../src/features/setup-links/setup-link-store.ts';
import { expireSetupLinks } from '../../../src/features/setup-links/setup-links.ts';
import { removeTenant, removeWaba } from '../../../src/ops/erasures/account-removal.ts';
import { readOperationEvents } from '../../../src/ops/feed/operation-events.ts';
import { OPERATOR_COMMAND } from '../../../src/platform/audit/audit.ts';
import { execute, queryColumn } from '../../../src/platform/postgres/sql.ts';
import { testSecretBox } from '../../support/test-accounts.ts';
import { type CallName, refusedWith } from './played-upstream.ts';
import {
  actionsOf,
  authorizedLink,
  begin,
  failureOf,
  linkOf,
  newCustomer,
  newLink,
  revoke,
  run,
  setupStackOfFile,
  tasksOf,
} from './setup-stack.ts';

const stack = setupStackOfFile();

describe('a number is connected', () => {
  test('from the dialog to the end: the tenant has the WABA, the app is subscribed, the number registered', async () => {
    const shop = await newCustomer(stack);
    const { id, accessToken, own } = await authorizedLink(stack, shop.tenantId, [shop.wabaId]);
    expect(await run(stack, id)).toMatchObject({ end: 'done' });
    const link = await linkOf(stack, id);
    expect(link).toMatchObject({
      state: 'done',
      wabaId: shop.wabaId,
      phoneNumberId: shop.number,
      tokenSealed: null,
    });
    expect(await openAccessToken({ database: stack.database, secretBox: testSecretBox }, shop.wabaId)).toBe(
      accessToken,
    );
    expect(shop.waba).toMatchObject({
      isSubscribed: true,
      override: 'https://gateway.example/upstream/webhook',
    });
    const registered = shop.waba.numbers.get(shop.number);
    expect(registered).toMatchObject({ isRegistered: true, pin: expect.stringMatching(/^\d{6}$/) });
    expect(await numberPin({ database: stack.database, secretBox: testSecretBox }, shop.number)).toBe(
      registered?.pin,
    );
    const actions = await actionsOf(stack, shop.tenantId);
    expect(actions.filter((one) => /^(setup_link|number|waba)\./.test(one))).toEqual([
      'setup_link.created',
      'setup_link.authorized',
      'waba.saved',
      'number.connected',
      'setup_link.done',
    ]);
    expect(await tasksOf(stack, id)).toBe(0);
    const asked = { types: ['setup_link.*', 'number.*'], tenantId: shop.tenantId, after: '0', limit: 100 };
    const { events } = await readOperationEvents(stack.database, asked);
    expect(events.map(({ type, wabaId, data }) => ({ type, wabaId, data }))).toEqual(
      ['number.connected', 'setup_link.done'].map((type) => ({
        type,
        wabaId: shop.wabaId,
        data: { setupLinkId: own.id, phoneNumberId: shop.number },
      })),
    );
    const visit = await stack.setup.see(own);
    expect(visit?.returnUrl).toBe(
      `https://crm.example/done?setupLink=${own.id}&status=done&wabaId=${shop.wabaId}&phoneNumberId=${shop.number}&state=visit-42`,
    );
  });

  test('by an access token, on a link with steps', async () => {
    const shop = await newCustomer(stack);
    const { link, token } = await newLink(stack, shop.tenantId, { mode: 'steps' });
    const { own } = await begin(stack, token);
    expect(await stack.setup.see(own)).toMatchObject({ asks: { for: 'token' } });
    const accessToken = stack.upstream.consent([shop.wabaId]).token;
    const wrong = { wabaId: shop.wabaId, accessToken: 'EAAG-of-nobody' };
    await expect(stack.setup.giveToken(own, wrong)).rejects.toMatchObject({ param: 'accessToken' });
    expect((await linkOf(stack, link.id)).state).toBe('started');
    await stack.setup.giveToken(own, { wabaId: shop.wabaId, accessToken });
    expect(await run(stack, link.id)).toMatchObject({ end: 'done' });
    expect((await findWaba(stack.database, shop.wabaId))?.tenantId).toBe(shop.tenantId);
  });

  test('a number that stays in the WhatsApp Business app is not registered; what the app has is copied', async () => {
    const shop = await newCustomer(stack);
    Object.assign(shop.waba.numbers.get(shop.number) ?? {}, { isInApp: true });
    const before = stack.upstream.count('syncBusinessApp');
    const { id } = await authorizedLink(stack, shop.tenantId, [shop.wabaId]);
    expect(await run(stack, id)).toMatchObject({ end: 'done' });
    expect(shop.waba.numbers.get(shop.number)?.isRegistered).toBe(false);
    expect(stack.upstream.count('syncBusinessApp') - before).toBe(2);
  });

  test('a link for the cloud alone takes no number out of the app', async () => {
    const shop = await newCustomer(stack);
    Object.assign(shop.waba.numbers.get(shop.number) ?? {}, { isInApp: true });
    const { id } = await authorizedLink(stack, shop.tenantId, [shop.wabaId], { connections: ['cloud'] });
    expect(await run(stack, id)).toMatchObject({ end: 'failed' });
    expect(await failureOf(stack, id)).toEqual(['failed', 'register', 'registration_refused', false]);
  });

  test('a name in review is attention, no failure', async () => {
    const shop = await newCustomer(stack);
    Object.assign(shop.waba.numbers.get(shop.number) ?? {}, { isInReview: true });
    const { id } = await authorizedLink(stack, shop.tenantId, [shop.wabaId]);
    await run(stack, id);
    expect(await linkOf(stack, id)).toMatchObject({ state: 'done', attention: ['number_in_review'] });
  });

  test('of several WABAs and numbers the customer chooses, from what upstream names for the token', async () => {
    const [one, two] = [await newCustomer(stack), await newCustomer(stack, 2)];
    const { id, own } = await authorizedLink(stack, two.tenantId, [one.wabaId, two.wabaId]);
    expect(await run(stack, id)).toMatchObject({ end: 'waits for the customer' });
    expect(await tasksOf(stack, id)).toBe(0);
    const visit = await stack.setup.see(own);
    expect(visit?.asks).toMatchObject({ for: 'waba', options: [{ id: one.wabaId }, { id: two.wabaId }] });
    const foreign = await newCustomer(stack);
    await expect(stack.setup.choose(own, foreign.wabaId)).rejects.toMatchObject({ code: 'invalid_value' });
    await stack.setup.choose(own, two.wabaId);
    expect(await tasksOf(stack, id)).toBe(1);
    expect(await run(stack, id)).toMatchObject({ end: 'waits for the customer' });
    expect(await stack.setup.see(own)).toMatchObject({ asks: { for: 'number' }, wabaId: null });
    await stack.setup.choose(own, two.numbers[1] ?? '');
    expect(await run(stack, id)).toMatchObject({ end: 'done' });
    expect(await linkOf(stack, id)).toMatchObject({ wabaId: two.wabaId, phoneNumberId: two.numbers[1] });
    expect((await listPhoneNumbers(stack.database, two.wabaId)).map((each) => each.phoneNumberId)).toEqual([
      two.numbers[1],
    ]);
    expect(await findWaba(stack.database, one.wabaId)).toBeNull();
  });

  test('two links of one tenant and one of another go on side by side', async () => {
    const [a, b] = [await newCustomer(stack), await newCustomer(stack)];
    const c = { ...(await newCustomer(stack)), tenantId: a.tenantId };
    const links = await Promise.all(
      [a, b, c].map(async (shop) => ({
        shop,
        link: await authorizedLink(stack, shop.tenantId, [shop.wabaId]),
      })),
    );
    await Promise.all(links.map(({ link }) => run(stack, link.id)));
    for (const { shop, link } of links) {
      expect((await linkOf(stack, link.id)).state).toBe('done');
      expect((await findWaba(stack.database, shop.wabaId))?.tenantId).toBe(shop.tenantId);
    }
  });
});

describe('a step is repeated without harm', () => {
  const DIES: [CallName, number][] = [
    ['readTokenRights', 1],
    ['listPhoneNumbers', 1],
    ['listSubscribedApps', 1],
    ['subscribeApp', 1],
    ['subscribeApp', 2],
    ['readNumberSetup', 1],
    ['registerNumber', 1],
    ['readNumberSetup', 2],
  ];

  test.each(DIES)(
    'the process dies behind call %s, number %i: the next one ends the set-up',
    async (name, nth) => {
      const shop = await newCustomer(stack);
      const { id, accessToken } = await authorizedLink(stack, shop.tenantId, [shop.wabaId]);
      const die = async () => {
        throw new Error('the process died');
      };
      const fine = async () => undefined;
      stack.upstream.failNext(name, ...Array.from({ length: nth - 1 }, () => fine), die);
      await expect(run(stack, id)).rejects.toThrow('the process died');
      expect((await linkOf(stack, id)).state).not.toBe('done');
      expect(await tasksOf(stack, id)).toBe(1);
      const before = stack.upstream.count('registerNumber');
      expect(await run(stack, id)).toMatchObject({ end: 'done' });
      // A number that upstream has registered is not registered again: ten are allowed in three days.
      expect(stack.upstream.count('registerNumber') - before).toBe(
        name === 'registerNumber' || (name === 'readNumberSetup' && nth === 2) ? 0 : 1,
      );
      expect(await openAccessToken({ database: stack.database, secretBox: testSecretBox }, shop.wabaId)).toBe(
        accessToken,
      );
      const actions = await actionsOf(stack, shop.tenantId);
      expect(actions.filter((one) => one === 'number.connected')).toHaveLength(1);
    },
  );

  test('the process dies between the two copies of the app: each is asked for, and a refused repetition is no failure', async () => {
    const shop = await newCustomer(stack);
    Object.assign(shop.waba.numbers.get(shop.number) ?? {}, { isInApp: true });
    const { id } = await authorizedLink(stack, shop.tenantId, [shop.wabaId]);
    stack.upstream.failNext('syncBusinessApp', async () => {
      throw new Error('the process died');
    });
    await expect(run(stack, id)).rejects.toThrow('the process died');
    stack.upstream.failNext('syncBusinessApp', refusedWith(2_593_107));
    expect(await run(stack, id)).toMatchObject({ end: 'done' });
  });

  test('upstream that does not answer is asked again, after growing waits', async () => {
    const shop = await newCustomer(stack);
    const { id } = await authorizedLink(stack, shop.tenantId, [shop.wabaId]);
    const away = refusedWith(null, { httpStatus: null, transient: true });
    stack.upstream.failNext('registerNumber', away, away, away);
    const waits = [await run(stack, id), await run(stack, id), await run(stack, id)];
    expect(waits.map(({ end, waitMs }) => [end, Math.round(waitMs / 1_000)])).toEqual([
      [null, 1],
      [null, 2],
      [null, expect.any(Number)],
    ]);
    expect(waits[2]?.waitMs).toBeGreaterThan(4_000);
    expect(await tasksOf(stack, id)).toBe(1);
    expect(await run(stack, id)).toMatchObject({ end: 'done' });
  });
});

describe('a link that is over', () => {
  test('a link that is revoked while a step is under way stays revoked, and its token is deleted', async () => {
    const shop = await newCustomer(stack);
    const { id, own } = await authorizedLink(stack, shop.tenantId, [shop.wabaId]);
    stack.upstream.failNext('readTokenRights', () => revoke(stack, shop.tenantId, own.id));
    expect(await run(stack, id)).toMatchObject({ end: 'over', summary: `${own.id} is revoked.` });
    expect(await linkOf(stack, id)).toMatchObject({ state: 'revoked', tokenSealed: null });
    expect(await findWaba(stack.database, shop.wabaId)).toBeNull();
    expect(await tasksOf(stack, id)).toBe(0);
    await expect(stack.setup.retry(own)).rejects.toMatchObject({ code: 'link_revoked' });
  });

  test('an expired link begins nothing', async () => {
    const shop = await newCustomer(stack);
    const { link, token } = await newLink(stack, shop.tenantId);
    await execute(stack.database, `update setup_links set expires_at = now() where id = :id`, {
      id: link.id,
    });
    await expect(stack.setup.start(token)).rejects.toMatchObject({ code: 'link_expired' });
    const visit = await stack.setup.see({ token, nonceOf: () => undefined });
    expect(visit).toMatchObject({ state: 'expired', refusal: 'link_expired', asks: null });
    expect(visit?.returnUrl).toContain('code=link_expired');
  });

  test('housekeeping marks it once, for the feed, and forgets it 30 days later', async () => {
    const shop = await newCustomer(stack);
    const { id, own } = await authorizedLink(stack, shop.tenantId, [shop.wabaId]);
    const { link: open } = await newLink(stack, shop.tenantId);
    await execute(stack.database, 'update setup_links set expires_at = now() where id = :id', { id });
    // Links of other tests have passed their time too.
    expect(await expireSetupLinks(stack.database, 100)).toBeGreaterThan(0);
    expect(await expireSetupLinks(stack.database, 100)).toBe(0);
    expect(await linkOf(stack, id)).toMatchObject({ state: 'expired', tokenSealed: null });
    expect(
      (await actionsOf(stack, shop.tenantId)).filter((one) => one === 'setup_link.expired'),
    ).toHaveLength(1);
    // The run that waits is told.
    expect(await run(stack, id)).toMatchObject({ end: 'over', summary: `${own.id} is expired.` });
    await execute(
      stack.database,
      `update setup_links set expires_at = now() - interval '29 days' where id = :id`,
      {
        id,
      },
    );
    expect(await forgetOldSetupLinks(stack.database, 100)).toBe(0);
    await execute(
      stack.database,
      `update setup_links set expires_at = now() - interval '31 days' where id = :id`,
      {
        id,
      },
    );
    expect(await forgetOldSetupLinks(stack.database, 100)).toBe(1);
    expect((await linkOf(stack, open.id)).state).toBe('open');
  });

  test('removing the WABA ends the link by which it came, and removing the tenant forgets its links', async () => {
    const shop = await newCustomer(stack);
    const { id, own } = await authorizedLink(stack, shop.tenantId, [shop.wabaId]);
    stack.upstream.failNext('registerNumber', refusedWith(1));
    expect(await run(stack, id)).toMatchObject({ end: 'failed' });
    expect(await numberPin({ database: stack.database, secretBox: testSecretBox }, shop.number)).toMatch(
      /^\d{6}$/,
    );
    const tools = { database: stack.database, actor: OPERATOR_COMMAND };
    await removeWaba(tools, shop.wabaId);
    expect((await linkOf(stack, id)).state).toBe('revoked');
    expect(await numberPin({ database: stack.database, secretBox: testSecretBox }, shop.number)).toBeNull();
    await expect(stack.setup.retry(own)).rejects.toMatchObject({ code: 'link_revoked' });
    await removeTenant(tools, shop.tenantId);
    await expect(linkOf(stack, id)).rejects.toThrow('there is no link');
  });

  test('a suspended tenant connects nothing', async () => {
    const shop = await newCustomer(stack);
    const { token } = await newLink(stack, shop.tenantId);
    await execute(stack.database, 'update tenants set suspended_at = now() where id = :tenantId', {
      tenantId: shop.tenantId,
    });
    await expect(stack.setup.start(token)).rejects.toMatchObject({ code: 'tenant_suspended' });
  });
});

test('neither the token nor a PIN or code is in any table in the clear', async () => {
  const shop = await newCustomer(stack);
  Object.assign(shop.waba.numbers.get(shop.number) ?? {}, { pin: '987001' });
  const { id, own, token, accessToken } = await authorizedLink(stack, shop.tenantId, [shop.wabaId]);
  const dump = async () => {
    const tables = ['setup_links', 'workflow_tasks', 'audit_log', 'wabas', 'phone_numbers'];
    const texts = await Promise.all(
      tables.map((table) =>
        queryColumn<string>(stack.database, `select row_to_json(t)::text from ${table} t`),
      ),
    );
    return texts.flat().join('\n');
  };
  const stored = [await dump()];
  await run(stack, id);
  await stack.setup.givePin(own, '987001');
  stored.push(await dump());
  await run(stack, id);
  stored.push(await dump());
  for (const text of stored) {
    for (const secret of [accessToken, token, own.nonce, '"987001"']) expect(text).not.toContain(secret);
  }
});
