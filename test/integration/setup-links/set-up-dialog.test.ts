import { describe, expect, test } from 'vitest';
import { refusedWith } from './played-upstream.ts';
import {
  actionsOf,
  begin,
  failureOf,
  linkOf,
  newCustomer,
  newLink,
  run,
  setupStackOfFile,
  tasksOf,
} from './setup-stack.ts';

const stack = setupStackOfFile();

describe('the dialog', () => {
  test('a code that is 31 seconds old is code_expired, and the customer begins again', async () => {
    const shop = await newCustomer(stack);
    const { link, token } = await newLink(stack, shop.tenantId);
    const first = await begin(stack, token);
    const { code } = stack.upstream.consent([shop.wabaId]);
    stack.upstream.passTime(31_000);
    await first.finish({ code });
    expect(await failureOf(stack, link.id)).toEqual(['failed', 'login', 'code_expired', true]);
    expect((await stack.setup.see(first.own))?.asks).toEqual({ for: 'start' });
    const again = await begin(stack, token);
    await again.finish({ code: stack.upstream.consent([shop.wabaId]).code });
    expect(await run(stack, link.id)).toMatchObject({ end: 'done' });
  });

  test('one code that comes twice at once counts once', async () => {
    const shop = await newCustomer(stack);
    const { link, token } = await newLink(stack, shop.tenantId);
    const browser = await begin(stack, token);
    const { code } = stack.upstream.consent([shop.wabaId]);
    await Promise.all(Array.from({ length: 5 }, () => browser.finish({ code })));
    // Upstream refuses the others, and what it refuses undoes nothing, whichever is written first.
    expect(await linkOf(stack, link.id)).toMatchObject({ state: 'authorized', failure: null });
    expect(await tasksOf(stack, link.id)).toBe(1);
  });

  test('an answer that upstream refuses late does not undo one that it took', async () => {
    const shop = await newCustomer(stack);
    const { link, token } = await newLink(stack, shop.tenantId);
    const browser = await begin(stack, token);
    const [late, good] = [stack.upstream.consent([shop.wabaId]), stack.upstream.consent([shop.wabaId])];
    stack.upstream.failNext('exchangeCode', async () => {
      await browser.finish({ code: good.code });
      throw refusedWith(100, { subcode: 36_009 });
    });
    await browser.finish({ code: late.code });
    expect(await linkOf(stack, link.id)).toMatchObject({ state: 'authorized', failure: null });
  });

  test('a link is begun by its token, or by its browser: not by its id, which can be guessed', async () => {
    const shop = await newCustomer(stack);
    const { link, token } = await newLink(stack, shop.tenantId);
    const id = `sl_${link.id}`;
    for (const nonce of ['', 'n'.repeat(43)]) {
      await expect(stack.setup.start({ id, nonce })).rejects.toMatchObject({ code: 'unknown_setup_link' });
    }
    const { own } = await begin(stack, token);
    await expect(stack.setup.start({ id, nonce: '' })).rejects.toMatchObject({ code: 'unknown_setup_link' });
    expect((await stack.setup.start(own)).id).toBe(id);
    // The cookie of before is of no use any more.
    expect(await stack.setup.see(own)).toBeNull();
  });

  test('cancelled, or left at a step: the link is as good as before', async () => {
    const shop = await newCustomer(stack);
    const { link, token } = await newLink(stack, shop.tenantId);
    await (await begin(stack, token)).finish({ error: 'access_denied', error_reason: 'user_denied' });
    expect(await failureOf(stack, link.id)).toEqual(['cancelled', 'login', 'login_cancelled', true]);
    const browser = await begin(stack, token);
    await browser.finish({ error: 'access_denied', current_step: 'PHONE_NUMBER_SETUP' });
    expect(await failureOf(stack, link.id)).toEqual([
      'cancelled',
      'PHONE_NUMBER_SETUP',
      'flow_abandoned',
      true,
    ]);
    expect((await stack.setup.see(browser.own))?.asks).toEqual({ for: 'start' });
    expect((await actionsOf(stack, shop.tenantId)).filter((one) => one === 'setup_link.failed')).toEqual([]);
  });

  test('a forged state, and one of another link or browser, changes nothing', async () => {
    const [shop, other] = [await newCustomer(stack), await newCustomer(stack)];
    const { link, token } = await newLink(stack, shop.tenantId);
    const browser = await begin(stack, token);
    const attacker = await begin(stack, (await newLink(stack, other.tenantId)).token);
    const { code } = stack.upstream.consent([shop.wabaId]);
    const before = stack.upstream.count('exchangeCode');
    const forged = browser.state.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'));
    for (const [state, nonceOf] of [
      [forged, browser.nonceOf],
      [browser.state, attacker.nonceOf],
      [browser.state, () => undefined],
      [browser.state, () => attacker.own.nonce],
      [attacker.state.replace(/^\d+/, link.id), browser.nonceOf],
      ['', browser.nonceOf],
    ] as const) {
      expect(await stack.setup.finishDialog({ state, code }, nonceOf)).toEqual({ id: null });
    }
    expect(stack.upstream.count('exchangeCode')).toBe(before);
    expect((await linkOf(stack, link.id)).state).toBe('started');
  });

  test('a second browser: the last that began counts, until upstream has authorized one', async () => {
    const shop = await newCustomer(stack);
    const { link, token } = await newLink(stack, shop.tenantId);
    const first = await begin(stack, token);
    const second = await begin(stack, token);
    const before = stack.upstream.count('exchangeCode');
    await first.finish({ code: stack.upstream.consent([shop.wabaId]).code });
    expect((await linkOf(stack, link.id)).state).toBe('started');
    expect(stack.upstream.count('exchangeCode')).toBe(before);
    await second.finish({ code: stack.upstream.consent([shop.wabaId]).code });
    expect((await linkOf(stack, link.id)).state).toBe('authorized');
    await expect(stack.setup.start(token)).rejects.toMatchObject({ code: 'link_used' });
    const seen = await stack.setup.see({ token, nonceOf: () => first.own.nonce });
    expect(seen).toMatchObject({ refusal: 'link_used', asks: null });
    for (const own of [first.own, { ...first.own, nonce: '' }]) {
      await expect(stack.setup.retry(own)).rejects.toMatchObject({ code: 'link_used' });
      expect(await stack.setup.see(own)).toBeNull();
    }
  });
});
